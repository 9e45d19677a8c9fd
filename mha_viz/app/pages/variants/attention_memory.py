"""Peak memory of explicit attention and of the fused kernel, measured for several lengths."""

from collections.abc import Sequence

import streamlit as st

from mha_viz.app.messages import escaped
from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.caption import caption, model_name
from mha_viz.app.widgets.chart import chart
from mha_viz.app.widgets.download_buttons import download_table
from mha_viz.app.widgets.recipes import recipe
from mha_viz.app.widgets.tables import table
from mha_viz.app.work.progress import Reporter, ResultSlots, wait_for
from mha_viz.export import Drawn, columns_data
from mha_viz.figures.lines import Line, Ticks, line_chart
from mha_viz.figures.text import format_bytes
from mha_viz.figures.theme import TextSizes, Theme
from mha_viz.lessons.peak_memory import PeakMemory, attention_memory

LENGTHS = (64, 128, 256, 512, 1024, 2048)
MAX_BYTES = 2**30  # of explicit attention; longer texts are not measured
BYTES_PER_SCORE = 12.2  # three float32 matrices and the boolean masks
_peaks = ResultSlots[list[PeakMemory]](8)


def show(view: View) -> None:
    """The peaks as a chart, and where they come from."""
    H, d_h = view.model.config.n_heads, view.model.config.d_head
    lengths = tuple(T for T in LENGTHS if BYTES_PER_SCORE * H * T * T <= MAX_BYTES)
    peaks = _measure(lengths, H, d_h)
    if peaks is None:
        return
    left, right = st.columns([3, 2], gap="medium")
    with left:
        caption(
            "Peak memory of attention",
            f"Peak memory for T positions, inputs excluded: {H} heads of width {d_h} as in "
            f"{escaped(model_name(view))}, with random q, k and v in float32. Both measured on the "
            "server's CPU; both axes are logarithmic.",
        )
        _peak_chart(view, peaks)
    with right:
        _explanation(peaks)


def _peak_chart(view: View, peaks: Sequence[PeakMemory]) -> None:
    last = peaks[-1]
    sizes = f"explicit {format_bytes(last.explicit)}, fused {format_bytes(last.fused)}"
    alt = f"At T = {last.T}: {sizes}."
    drawn = recipe(view, _draw_peaks, peaks=peaks, cannot="It shows memory measured on the server.")
    chart(drawn, key="attention_memory", name="Peak memory of attention", height=330, alt=alt)


def _draw_peaks(peaks: Sequence[PeakMemory], theme: Theme, sizes: TextSizes) -> Drawn:
    T = [peak.T for peak in peaks]
    explicit, fused = [peak.explicit for peak in peaks], [peak.fused for peak in peaks]
    # The guides are below the measured lines, so that the lines do not hide them.
    quadratic = [explicit[0] / 2 * (t / T[0]) ** 2 for t in T]
    linear = [fused[0] / 2 * t / T[0] for t in T]
    lines = [
        Line("explicit", explicit, theme.muted),
        Line("fused kernel", fused, theme.accent),
        Line("slope of T²", quadratic, theme.muted, guide=True),
        Line("slope of T", linear, theme.accent, guide=True),
    ]
    byte_ticks = [2.0**n for n in range(14, 34, 4)]
    figure = line_chart(
        T,
        lines,
        theme,
        x_title="positions T",
        y_title="",
        log=True,
        x_ticks=Ticks(T, [str(t) for t in T]),
        y_ticks=Ticks(byte_ticks, [format_bytes(n) for n in byte_ticks]),
        value_format="%{y:,} bytes",
        sizes=sizes,
    )
    data = columns_data(T=T, explicit_bytes=explicit, fused_bytes=fused)
    return figure, data


def _explanation(peaks: Sequence[PeakMemory]) -> None:
    st.latex(
        r"\underbrace{3\,H\,T^2}_{\text{explicit}}\qquad "
        r"\underbrace{H\,T\,d_h + O(T)}_{\text{fused}}\quad\text{values}"
    )
    explained.paragraph(
        "Explicit attention holds the scores, the masked scores and the pattern of every head. "
        "The fused kernel works in tiles and holds the output and some workspace, which grow like "
        "T, not like T²."
    )
    table(
        ["T", "explicit", "fused", "explicit / fused"],
        [
            [peak.T, format_bytes(peak.explicit), format_bytes(peak.fused), _ratio(peak)]
            for peak in peaks
        ],
        key="memory_table",
        alt="Peak memory of explicit attention and of the fused kernel for each T.",
    )
    if len(peaks) < len(LENGTHS):
        limit = format_bytes(MAX_BYTES)
        explained.note(
            f"Longer texts are not measured: explicit attention would need over {limit}."
        )
    explained.note("Dao et al. 2022, section 3.1 and theorem 1.")
    rows = [[peak.T, peak.explicit, peak.fused] for peak in peaks]
    download_table("attention_memory.csv", ["T", "explicit (bytes)", "fused (bytes)"], rows)


def _measure(lengths: tuple[int, ...], n_heads: int, d_head: int) -> list[PeakMemory] | None:
    def work(report: Reporter) -> list[PeakMemory]:
        def on_length(done: int) -> None:
            report(done / len(lengths))

        return attention_memory(lengths, n_heads, d_head, on_length=on_length)

    slot = _peaks(lengths, n_heads, d_head)
    return wait_for(slot, "Measuring memory", work, lane="memory")


def _ratio(peak: PeakMemory) -> str:
    return f"{peak.explicit / peak.fused:.1f}×"
