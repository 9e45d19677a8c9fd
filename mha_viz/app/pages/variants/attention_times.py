"""The time of explicit attention and of the fused kernel over T, measured on the server."""

from collections.abc import Sequence

from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.chart import chart
from mha_viz.app.widgets.download_buttons import download_table
from mha_viz.app.widgets.recipes import recipe
from mha_viz.app.work.progress import results
from mha_viz.export import Drawn, rows_data
from mha_viz.figures.lines import Line, Ticks, line_chart
from mha_viz.figures.theme import TextSizes, Theme
from mha_viz.lessons.kernel_times import PartTimes, part_times

LENGTHS = (64, 128, 256, 512, 1024, 2048)
MAX_SCORES = 2**27  # of explicit attention; longer texts are not timed
REPEATS = 5
MEASURED = "It shows times measured on the server, which differ from run to run."
HEADER = [
    "T", "explicit (ms)", "explicit, shortest", "explicit, longest",
    "fused (ms)", "fused, shortest", "fused, longest",
]  # fmt: skip


def show(view: View) -> None:
    """The times as a chart, after a click, and what they say."""
    config = view.model.config
    H, d_h = config.n_heads, config.d_head
    lengths = [T for T in LENGTHS if H * T * T <= MAX_SCORES]
    caption(
        "Time of attention",
        f"{H} heads of width {d_h}, float32, on the server's CPU. Points: median of {REPEATS} "
        "runs; bars: shortest to longest. Both axes are logarithmic.",
    )
    times, _ = results(
        f"attention times {H} {d_h}",
        lambda report: part_times(config.d_model, H, lengths, d_head=d_h, repeats=REPEATS),
        total=len(lengths),
        what="lengths",
        cost=f"Times both kernels at T = {lengths[0]} to {lengths[-1]:,} on the server.",
        lane="attention times",
    )
    if not times:
        return
    sentence = times_sentence(times)
    drawn = recipe(view, _draw_times, times=times, cannot=MEASURED)
    chart(drawn, key="attention_times", name="Time of attention", height=300, alt=sentence)
    explained.paragraph(sentence)
    download_table("attention_times.csv", HEADER, _rows(times))


def times_sentence(times: Sequence[PartTimes]) -> str:
    """How the two compare at the longest text that was timed."""
    last = times[-1]
    explicit, fused = last.explicit, last.fused
    text = (
        f"At T = {last.T:,} explicit attention takes {explicit.median:.2f} ms and the fused kernel "
        f"{fused.median:.2f} ms on this CPU (medians)"
    )
    if explicit.overlaps(fused):
        return f"{text}; the ranges overlap, so their order may be chance."
    less, more = sorted((explicit.median, fused.median))
    name = "the fused kernel" if fused.median < explicit.median else "explicit attention"
    return (
        f"{text}: {name} is **{more / less:.1f}×** faster. A CPU has caches instead of SRAM, so "
        "other machines give other ratios."
    )


def _draw_times(times: Sequence[PartTimes], theme: Theme, sizes: TextSizes) -> Drawn:
    T = [each.T for each in times]
    looks = (("explicit", theme.muted), ("fused", theme.accent))
    lines = []
    for kernel, colour in looks:
        spreads = [getattr(each, kernel) for each in times]
        ranges = [(spread.shortest, spread.longest) for spread in spreads]
        name = "fused kernel" if kernel == "fused" else kernel
        lines.append(Line(name, [spread.median for spread in spreads], colour, ranges=ranges))
    ms = [n * 10.0**power for power in range(-3, 5) for n in (1, 3)]
    figure = line_chart(
        T,
        lines,
        theme,
        x_title="positions T",
        y_title="milliseconds",
        log=True,
        x_ticks=Ticks(T, [f"{t:,}" for t in T]),
        y_ticks=Ticks(ms, [f"{n:g}" for n in ms]),
        value_format="%{y:.2f} ms",
        sizes=sizes,
    )
    data = rows_data(HEADER, _rows(times))
    return figure, data


def _rows(times: Sequence[PartTimes]) -> list[list[object]]:
    return [
        [
            t.T,
            *(value for s in (t.explicit, t.fused) for value in (s.median, s.shortest, s.longest)),
        ]
        for t in times
    ]
