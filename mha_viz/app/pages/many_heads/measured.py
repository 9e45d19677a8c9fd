"""The measured times of a layer's parts, by kernel."""

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
from mha_viz.lessons.counting import attention_flops
from mha_viz.lessons.kernel_times import PartTimes, part_times

MEASURED = "It shows times measured on the server, which differ from run to run."
PARTS = ("projections", "explicit", "fused")
FIRST = 32  # positions
MAX_SCORE_BYTES = 2**29  # of the three matrices of scores that explicit attention holds
MAX_FLOPS = 1e11  # of all runs together
REPEATS = 5


def show(view: View, C: int, H: int, G: int, T: int) -> None:
    """The times over T up to the selected one, once the user asked for them."""
    lengths = measurable(C, H, G, T)
    caption(
        "Measured times over T",
        f"One layer of this size, one sequence, float32 on the server's CPU. Points: median of "
        f"{REPEATS} runs; bars: shortest to longest. Both axes are logarithmic.",
    )
    if not lengths:
        explained.paragraph("A layer of this size is too large to be timed here.")
        return
    times, _ = results(
        f"part times {C} {H} {G} {lengths[-1]}",
        lambda report: part_times(C, H, lengths, n_kv_heads=G, repeats=REPEATS),
        total=len(lengths),
        what="lengths",
        cost=f"Times a layer at T = {lengths[0]} to {lengths[-1]:,} on the server.",
        lane="part times",
    )
    if not times:
        return
    sentence = times_sentence(times)
    drawn = recipe(view, _draw_times, times=times, cannot=MEASURED)
    chart(drawn, key="part_times", name="Measured times over T", height=300, alt=sentence)
    explained.paragraph(sentence)
    if lengths[-1] < T:
        explained.note(f"Longer texts are not timed: at most T = {lengths[-1]:,} for this size.")
    download_table("part_times.csv", *times_table(times))


def measurable(C: int, H: int, G: int, T: int) -> list[int]:
    """The powers of two up to T at which the layer can be timed in a few seconds."""
    lengths: list[int] = []
    flops = 0.0
    n = FIRST
    while n <= max(T, FIRST) and 12 * H * n * n <= MAX_SCORE_BYTES:
        # Explicit and fused attention both run, each once to warm up.
        flops += 2 * (REPEATS + 1) * attention_flops(n, C, H, n_kv_heads=G).total
        if flops > MAX_FLOPS:
            break
        lengths.append(n)
        n *= 2
    return lengths


def times_sentence(times: Sequence[PartTimes]) -> str:
    """From which T on attention takes longer than the projections, by kernel."""
    last = times[-1]
    parts = ", ".join(f"{part} {getattr(last, part).median:.2f} ms" for part in PARTS)
    return f"At T = {last.T:,}: {parts}. {_crossing(times, 'explicit')} {_crossing(times, 'fused')}"


def _crossing(times: Sequence[PartTimes], kernel: str) -> str:
    name = "Explicit attention" if kernel == "explicit" else "The fused kernel"
    slower = [getattr(t, kernel).median > t.projections.median for t in times]
    if not slower[-1]:
        return f"{name} takes less time than the projections, up to the last T measured."
    first = len(slower) - slower[::-1].index(False) if False in slower else 0
    return f"{name} takes longer than the projections from T = {times[first].T:,} on."


def times_table(times: Sequence[PartTimes]) -> tuple[list[str], list[list[object]]]:
    """A header and a row for each T: the spread of each part, in milliseconds."""
    ends = ("median", "shortest", "longest")
    header = ["T", *(f"{part}, {end} (ms)" for part in PARTS for end in ends)]
    rows: list[list[object]] = [
        [t.T, *(getattr(getattr(t, part), end) for part in PARTS for end in ends)] for t in times
    ]
    return header, rows


def _draw_times(times: Sequence[PartTimes], theme: Theme, sizes: TextSizes) -> Drawn:
    T = [each.T for each in times]
    looks = zip(PARTS, (theme.muted, theme.query, theme.accent), strict=True)
    lines = []
    for part, colour in looks:
        spreads = [getattr(each, part) for each in times]
        ranges = [(spread.shortest, spread.longest) for spread in spreads]
        medians = [spread.median for spread in spreads]
        name = part if part == "projections" else f"{part} attention"
        lines.append(Line(name, medians, colour, ranges=ranges))
    ms = [n * 10.0**power for power in range(-3, 5) for n in (1, 3)]
    figure = line_chart(
        T,
        lines,
        theme,
        x_title="positions T",
        y_title="milliseconds",
        log=True,
        x_ticks=Ticks(T, [f"{n:,}" for n in T]),
        y_ticks=Ticks(ms, [f"{n:g}" for n in ms]),
        value_format="%{y:.2f} ms",
        sizes=sizes,
    )
    data = rows_data(*times_table(times))
    return figure, data
