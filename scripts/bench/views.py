"""Every view of the app at GPT-2 small's size: bytes, server time, and drawing time.

The corresponding views of BertViz and CircuitsVis follow them. The table is printed before the
table of all measurements, which has two goals: no view sends more than 1.5 MB, and the lines of
256 tokens are drawn in a tenth of the time that BertViz's head_view takes for 128.
"""

import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from bench.common import NotMeasured, Row, at_least, chromium, show

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from bench.peers import Peer
    from bench.sent import Sent, Shown
    from bench.sheet import Sheet

LIMIT = 1_500_000  # bytes
LINES_T, THEIRS_T = 256, 128
SLOW = 1.0  # seconds; a view that takes longer is timed once
QUICK = (16, LINES_T)
NOTE = (
    "Sent: the figure's JSON, the component's data, or the HTML that a notebook gets, before "
    "compression. Server: CPU time with one thread, from an existing trace; “random numbers” take "
    "the place of results that the page computes for minutes. Drawn: ours from the JSON until "
    "images are decoded and two frames have passed, in a page that has drawn before; BertViz and "
    "CircuitsVis from the start of their page until all marks exist and two frames have passed. "
    "BertViz's head_view draws every weight of 12 heads; our lines are the strongest ones, as many "
    "as the table says."
)


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the table; times are in milliseconds, `drawn` is None if it was not drawn."""

    name: str
    T: str
    shown: str
    n_bytes: int
    server: float
    drawn: float | None
    ours: bool = True


def views(quick: bool) -> Iterator[Row]:
    """Prints the table of all views; yields a row for each of the two goals."""
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        lines = list(_printed(_measured(browser, Path(folder), quick)))
    most = max((line for line in lines if line.ours), key=lambda line: line.n_bytes)
    sent, goal = show(most.n_bytes / 1e3, "kB"), f"at most {LIMIT / 1e3:,.0f} kB"
    note = f"The largest view is “{most.name}” at T = {most.T}."
    yield Row("The largest view, sent", "", sent, "", goal, most.n_bytes <= LIMIT, note)
    theirs = _drawn(lines, "BertViz head_view", THEIRS_T)
    ours = _drawn(lines, "Lines", LINES_T)
    what = f"Lines at T = {LINES_T}, drawn; BertViz's head_view at T = {THEIRS_T}"
    yield at_least(what, theirs, ours, 10, "ms", NOTE)


def _drawn(lines: Sequence[Line], name: str, T: int) -> float:
    drawn = next(line.drawn for line in lines if (line.name, line.T) == (name, str(T)))
    if drawn is None:
        raise NotMeasured(f"{name} was not drawn at T = {T}.")
    return drawn


def _measured(browser: "Browser", folder: Path, quick: bool) -> Iterator[Line]:
    # Imported here, so that other measurements run without Streamlit. The components come first,
    # because they are recorded while they are imported.
    from bench import components, explore, lessons, peers
    from bench.sent import LENGTHS
    from bench.sheet import Sheet

    sheet = Sheet(browser, folder, components.PARTS)
    beside = {
        explore.ATTENTION[0]: (peers.MODEL_VIEW, peers.ATTENTION_HEADS),
        explore.ATTENTION[1]: (peers.ATTENTION_PATTERN,),
        components.LINES: (peers.HEAD_VIEW,),
    }
    parts = components.STRIP, components.LINES
    rest = *explore.HEAD, *explore.REST, components.BOARD, *lessons.LESSONS
    for view in (*explore.ATTENTION, *parts, *rest):
        yield from _of_view(view, sheet, QUICK if quick else LENGTHS, 1 if quick else 3)
        for peer in beside.get(view, ()):
            yield from _of_peer(peer, browser, folder, quick)


def _of_view(view: "Shown", sheet: "Sheet", lengths: Sequence[int], repeats: int) -> Iterator[Line]:
    """A line for each length; lengths beyond the view's limit share one."""
    from bench.sent import ANY

    print(f"measuring views: {view.name} …", file=sys.stderr, flush=True)
    if view.any_text:
        lengths = [ANY]
    for n in dict.fromkeys(min(T, view.most) for T in lengths):
        of = [T for T in lengths if min(T, view.most) == n]
        sent, server = _made(lambda n=n: view.make(n), repeats)
        drawn = median(sheet.drawn(sent, repeats))
        first = f"at most the first {n:,} tokens" if n < of[-1] and not view.any_text else ""
        shown = ", ".join(filter(None, (first, sent.shown)))
        T = "any" if view.any_text else ", ".join(map(str, of))
        yield Line(view.name, T, shown, sent.n_bytes, server, drawn)


def _made(make: Callable[[], "Sent"], repeats: int) -> tuple["Sent", float]:
    """What is sent, and the median CPU milliseconds of making it; a slow view is timed once."""
    sent = make()  # fills the caches that the views share: traces, and the model itself
    times: list[float] = []
    while len(times) < repeats and sum(times) < SLOW:
        begun = time.process_time()
        make()
        times.append(time.process_time() - begun)
    return sent, 1e3 * median(times)


def _of_peer(peer: "Peer", browser: "Browser", folder: Path, quick: bool) -> Iterator[Line]:
    from bench import peers

    lengths = peers.LENGTHS
    if quick:
        lengths = (THEIRS_T,) if peer is peers.HEAD_VIEW else lengths[:1]
    for size in peers.measure(peer, lengths, browser, folder):
        shown, T = size.why or peer.shown, str(size.n_tokens)
        yield Line(peer.name, T, shown, size.n_bytes, size.made, size.drawn, ours=False)


def _printed(lines: Iterator[Line]) -> Iterator[Line]:
    """The same lines, each printed when it arrives."""
    print("| View | T | Shown | Sent | Server | Drawn |")
    print("|---|---:|---|---:|---:|---:|")
    for line in lines:
        sent = show(line.n_bytes / 1e3, "kB") if line.n_bytes else ""
        server = show(line.server, "ms") if line.n_bytes else ""
        drawn = "" if line.drawn is None else show(line.drawn, "ms")
        row = f"| {line.name} | {line.T} | {line.shown} | {sent} | {server} | {drawn} |"
        print(row, flush=True)
        yield line
    print()
