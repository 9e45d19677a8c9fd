"""The A list of heads part: the simplest layer with many heads, and its race against one batch."""

import inspect
from collections.abc import Sequence

import streamlit as st

from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.chart import chart
from mha_viz.app.widgets.download_buttons import download_table
from mha_viz.app.widgets.recipes import recipe
from mha_viz.app.work import jobs
from mha_viz.app.work.progress import results
from mha_viz.export import Drawn, rows_data
from mha_viz.figures.text import format_bytes
from mha_viz.figures.theme import TextSizes, Theme
from mha_viz.figures.timing import Timed, timing_chart
from mha_viz.lessons import forms
from mha_viz.lessons.race import (
    BATCH_FUSED,
    BATCH_PLAIN,
    LIST_FUSED,
    LIST_PLAIN,
    WAYS,
    Timing,
    race,
    registered_parameters,
    score_bytes,
)

MEASURED = "It shows times measured on the server, which differ from run to run."
RACE = {"d_model": 768, "T": 256}
HEAD_COUNTS = (1, 2, 4, 8, 12, 24, 48, 96)
REPEATS = 7
MEANINGS = {
    LIST_PLAIN: "one head after the other, each with its own projections, scores and softmax",
    BATCH_PLAIN: "one projection for all heads, then one product of shape [B, H, T, T]",
    LIST_FUSED: "one head after the other, scores and softmax in torch's fused kernel",
    BATCH_FUSED: "one projection, all heads in one call of the fused kernel: the module",
}


def show(view: View) -> None:
    """The code of the list, why it is a ModuleList, and the race."""
    _code(view)
    _race(view)


def _code(view: View) -> None:
    config = view.model.config
    C, H = config.d_model, config.n_heads
    caption(
        "A list of heads",
        f"The simplest layer with several heads: H heads of width C / H, here {H} of {C // H}, run "
        "one after the other.",
    )
    left, right = st.columns([6, 5], gap="medium")
    with left:
        st.code(inspect.getsource(forms.HeadByHead), language="python", wrap_lines=True)
    found, missed = registered_parameters(C, H)
    with right:
        explained.paragraph(
            "Every head reads the same $x$ and writes its own $z$ of width $d_h$. The outputs are "
            "concatenated, and $W_O$ mixes them."
        )
        explained.paragraph(
            "**Why `nn.ModuleList` and not a Python list?** torch finds parameters through "
            f"registered modules. With `nn.ModuleList`, `parameters()` gives all **{found:,}** of "
            f"this layer; with a Python list it gives **{found - missed:,}**, those of W_O. The "
            f"other {missed:,} would not be trained, saved, or moved to a GPU, and torch would "
            "not warn you."
        )


def _race(view: View) -> None:
    caption(
        "The race",
        f"Time of a layer with C = {RACE['d_model']} on T = {RACE['T']} positions, on the "
        f"server's CPU. All four run in turn, {REPEATS} times. Points: median; bars: shortest to "
        "longest run. Both axes are logarithmic, and all outputs are equal up to rounding.",
    )
    timings, _ = results(
        "race",
        lambda report: race(**RACE, head_counts=HEAD_COUNTS, repeats=REPEATS),
        total=len(HEAD_COUNTS),
        what="head counts",
    )
    _race_chart(view, timings)
    if timings:
        explained.paragraph(verdict(timings[-1], RACE["T"]))
    explained.paragraph("\n".join(f"- **{name}**: {text}" for name, text in MEANINGS.items()))
    again, download = st.columns([1, 3])
    again.button("Measure again", on_click=jobs.forget, args=("race",), icon=":material/replay:")
    with download:
        download_table("race.csv", *race_table(timings))


def verdict(timing: Timing, T: int) -> str:
    """What the race says at this number of heads, and the reason."""
    H, listed, batch = timing.n_heads, timing.ms[LIST_PLAIN], timing.ms[BATCH_PLAIN]
    fused = timing.ms[BATCH_FUSED]
    held, one = format_bytes(score_bytes(H, T)), format_bytes(score_bytes(1, T))
    times = (
        f"With a plain softmax and H = {H}, the batch takes {batch.median:.1f} ms and the list "
        f"{listed.median:.1f} ms (medians)"
    )
    reason = (
        f"The batch computes the scores of all heads at once, H·T² numbers or {held}, and the mask "
        "and the softmax pass over them several times. The list holds one head's "
        f"{one} at a time, which a core's cache can hold."
    )
    if batch.overlaps(listed):
        return (
            f"{times}. The ranges overlap, so these runs **do not show** which is faster. {reason}"
        )
    if batch.median < listed.median:
        return f"{times}: the batch is **faster**, although it holds more. {reason}"
    if fused.longest < batch.shortest:
        reason += (
            " The fused kernel never writes the scores to memory, so it avoids this: "
            f"{fused.median:.1f} ms in a batch."
        )
    return f"{times}: here one batch is **slower**. {reason}"


def race_table(timings: Sequence[Timing]) -> tuple[list[str], list[list[object]]]:
    """A header and a row for each number of heads: the spread of each way, in milliseconds."""
    parts = ("median", "shortest", "longest")
    header = ["heads", *(f"{way}, {part} (ms)" for way in WAYS for part in parts)]
    rows: list[list[object]] = [
        [t.n_heads, *(getattr(t.ms[way], part) for way in WAYS for part in parts), t.difference]
        for t in timings
    ]
    return [*header, "largest difference"], rows


def _race_chart(view: View, timings: Sequence[Timing]) -> None:
    alt = "Nothing has been measured yet."
    if timings:
        last = timings[-1]
        alt = f"{last.n_heads} heads: " + ", ".join(
            f"{way} {last.ms[way].median:.1f} ms" for way in WAYS
        )
    drawn = recipe(view, _draw_race, timings=timings, cannot=MEASURED)
    chart(drawn, key="race", name="List or batch, plain or fused", height=360, alt=alt)


def _draw_race(timings: Sequence[Timing], theme: Theme, sizes: TextSizes) -> Drawn:
    ways = {
        way: [Timed(t.ms[way].median, t.ms[way].shortest, t.ms[way].longest) for t in timings]
        for way in WAYS
    }
    heads = [t.n_heads for t in timings]
    figure = timing_chart(heads, ways, theme, all_heads=HEAD_COUNTS, sizes=sizes)
    data = rows_data(*race_table(timings))
    return figure, data
