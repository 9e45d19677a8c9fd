"""The views of BertViz and CircuitsVis, at the sizes that they draw within LIMIT seconds.

Both get the patterns of our trace. The size is that of the HTML in a notebook, which holds all
patterns; CircuitsVis also loads its JavaScript. The clock runs in Chromium from the start of
the page until all marks exist and two frames have passed. A size is not tried if the time of the
previous one, times the square of the growth of T, exceeds the limit.
"""

import html
import importlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from bench import grid
from bench.common import WINDOW
from bench.sent import AT, traced
from mha_viz.trace import Array, Trace

if TYPE_CHECKING:
    from playwright.sync_api import Browser

LIMIT = 60  # seconds
LENGTHS = (16, 64, 128, 256, 1024)
L, H = 12, 12
WATCH = """
const look = () => {
  if (!(%s)) return requestAnimationFrame(look);
  requestAnimationFrame(() => requestAnimationFrame(() => { window.drawn = performance.now(); }));
};
requestAnimationFrame(look);
"""
LINES = 'document.querySelectorAll("#vis line").length >= %d'
# Charts are drawn in order; at the end, the middle of the last one is no longer transparent.
CHARTS = """(() => {
  const charts = document.querySelectorAll("canvas");
  if (charts.length < %d) return false;
  const { width, height } = charts[charts.length - 1];
  const pen = charts[charts.length - 1].getContext("2d");
  return width > 0 && pen.getImageData(width / 2, height / 2, 1, 1).data[3] > 0;
})()"""


@dataclass(frozen=True, slots=True)
class Html:
    """The HTML in a notebook, and the page that is opened here, if it differs."""

    sent: str
    opened: str = ""


@dataclass(frozen=True, slots=True)
class Peer:
    """A view of another library; `drawn_when` is a test in JavaScript for T tokens."""

    package: str
    name: str
    shown: str
    make: Callable[[int], Html]
    drawn_when: Callable[[int], str]


@dataclass(frozen=True, slots=True)
class Measured:
    """A size of a view: times in milliseconds; `drawn` is None if it was not drawn, and `why`."""

    n_tokens: int
    n_bytes: int = 0
    made: float = 0.0
    drawn: float | None = None
    why: str = ""


def measure(
    peer: Peer, lengths: Sequence[int], browser: "Browser", folder: Path
) -> Iterator[Measured]:
    """The sizes one by one, up to the first that would take too long."""
    last, seconds = 0, 0.0
    for T in lengths:
        if last and seconds * (T / last) ** 2 > LIMIT:
            yield Measured(T, why=f"not tried: {seconds:.1f} s or more at T = {last}")
            continue
        try:
            importlib.import_module(peer.package)
        except ImportError as error:
            yield Measured(T, why=f"not tried: {error}; see requirements-bench.txt")
            continue
        traced(T)  # before the clock starts
        begun = time.process_time()
        page = peer.make(T)
        made = 1e3 * (time.process_time() - begun)
        drawn = _drawn(browser, written(page, folder), WATCH % peer.drawn_when(T))
        why = "" if drawn is not None else f"not drawn in {LIMIT} s"
        yield Measured(T, len(page.sent.encode()), made, drawn, why)
        last, seconds = T, float(LIMIT) if drawn is None else drawn / 1e3


def written(page: Html, folder: Path) -> Path:
    """The file of a page, with what it loads beside it."""
    file = folder / "theirs.html"
    if page.opened:
        file.write_text(page.opened, encoding="utf-8")
    else:
        grid.write_pages(folder, "{}", page.sent)
    return file


def _drawn(browser: "Browser", file: Path, watch: str) -> float | None:
    """Milliseconds until the page is drawn; None if that takes too long or too much memory."""
    from playwright.sync_api import Error

    context = browser.new_context(viewport=WINDOW)
    context.set_default_timeout(1e3 * LIMIT)
    page = context.new_page()
    page.add_init_script(watch)
    try:
        page.goto(file.as_uri(), wait_until="commit")
        page.wait_for_function("window.drawn")
        taken: float = page.evaluate("window.drawn")
    except Error:
        return None
    finally:
        context.close()
    return taken


def _bertviz(view: str, T: int) -> Html:
    import bertviz

    patterns = [torch.from_numpy(traced(T).patterns(layer))[None] for layer in range(L)]
    tokens = [html.escape(token) for token in traced(T).tokens]
    return Html(sent=str(getattr(bertviz, view)(patterns, tokens, html_action="return").data))


def _circuitsvis(view: str, pattern: Callable[[Trace], Array], T: int) -> Html:
    from circuitsvis import attention

    show = getattr(attention, view)
    made = show(attention=pattern(traced(T)), tokens=list(traced(T).tokens))
    start = '<!doctype html><meta charset="utf-8"><body>'
    return Html(sent=made.cdn_src, opened=start + made.local_src)


def _every_pattern(trace: Trace) -> Array:
    return np.concatenate([trace.patterns(layer) for layer in range(L)])


MODEL_VIEW = Peer(
    "bertviz",
    "BertViz model_view",
    "144 heads",
    partial(_bertviz, "model_view"),
    lambda T: LINES % (L * H * T * T),
)
HEAD_VIEW = Peer(
    "bertviz",
    "BertViz head_view",
    "12 heads of a layer",
    partial(_bertviz, "head_view"),
    lambda T: LINES % (H * T * T),
)
ATTENTION_HEADS = Peer(
    "circuitsvis",
    "CircuitsVis attention_heads",
    "144 heads, one of them large",
    partial(_circuitsvis, "attention_heads", _every_pattern),
    lambda T: CHARTS % (L * H + 1),
)
ATTENTION_PATTERN = Peer(
    "circuitsvis",
    "CircuitsVis attention_pattern",
    "one head",
    partial(_circuitsvis, "attention_pattern", lambda trace: trace.pattern(*AT)),
    lambda T: CHARTS % 1,
)
