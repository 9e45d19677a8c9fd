"""The time of several implementations of a layer over the number of heads."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import plotly.graph_objects as go

from mha_viz.figures.base import Spec, Style, hover
from mha_viz.figures.labels import apart
from mha_viz.figures.marks import line
from mha_viz.figures.text import escape, text_width
from mha_viz.figures.theme import NORMAL, TextSizes, Theme

TICKS = (1, 2, 5)  # of each decade
ASIDE = (-0.09, -0.03, 0.03, 0.09)  # of each way, so that bars do not cover one another
APART = 0.075  # between the labels at the ends of lines, as a share of the height


class Timed(NamedTuple):
    """Milliseconds of several runs."""

    median: float
    shortest: float
    longest: float


def timing_chart(
    heads: Sequence[int],
    ways: Mapping[str, Sequence[Timed]],
    theme: Theme,
    *,
    all_heads: Sequence[int],
    sizes: TextSizes = NORMAL,
) -> go.Figure:
    """A line for each of up to four ways, each with a bar from the shortest run to the longest.

    `heads` are the numbers of heads timed so far, out of `all_heads`. Two ways share a colour; the
    first two lines are dotted. The names stand at the ends of the lines, never on one another.
    """
    style = Style(theme, sizes)
    low, high = _range(ways)
    x = [list(all_heads).index(n) for n in heads]
    looks = [(c, d) for d in ("dot", "solid") for c in (theme.key, theme.accent)]
    lines = [
        _line(name, [i + aside for i in x], times, colour, dash)
        for (name, times), (colour, dash), aside in zip(ways.items(), looks, ASIDE, strict=False)
    ]
    border = {"showline": True, "linecolor": theme.hairline}
    counts = {"tickvals": list(range(len(all_heads))), "ticktext": [str(n) for n in all_heads]}
    at = [n * 10.0**power for power in range(-3, 6) for n in TICKS]
    labelled = {"tickvals": at, "ticktext": [f"{ms:g}" for ms in at]}
    y_axis = style.axis("milliseconds", grid=True, type="log", range=[low, high])
    return style.figure(
        *lines,
        margin={"l": 52, "r": text_width(ways, sizes.text) + 16, "t": 10, "b": 46},
        annotations=_names(x, ways, [colour for colour, _ in looks], (low, high), style),
        xaxis=style.axis("heads H", range=[-0.3, len(all_heads) - 0.7]) | counts | border,
        yaxis=y_axis | labelled | border,
    )


def _range(ways: Mapping[str, Sequence[Timed]]) -> tuple[float, float]:
    """The powers of ten between which all times lie."""
    times = [ms for runs in ways.values() for run in runs for ms in run] or [1.0, 100.0]
    return math.log10(0.85 * min(times)), math.log10(1.15 * max(times))


def _line(name: str, x: list[float], times: Sequence[Timed], colour: str, dash: str) -> Spec:
    y = [run.median for run in times]
    drawn = line(x, y, colour, 2.5, name=escape(name), mode="lines+markers", cliponaxis=False)
    drawn["line"]["dash"] = dash
    spread = {
        "type": "data",
        "symmetric": False,
        "array": [run.longest - run.median for run in times],
        "arrayminus": [run.median - run.shortest for run in times],
        "color": colour,
        "thickness": 1,
        "width": 3,
    }
    ranges = [[run.shortest, run.longest] for run in times]
    text = f"{escape(name)}: %{{y:.1f}} ms (%{{customdata[0]:.1f}} to %{{customdata[1]:.1f}})"
    shown = {"marker": {"size": 7, "color": colour}, "customdata": ranges, "hoverinfo": "all"}
    return drawn | {"error_y": spread} | shown | hover(text)


def _names(
    x: list[int],
    ways: Mapping[str, Sequence[Timed]],
    colours: Sequence[str],
    bounds: tuple[float, float],
    style: Style,
) -> list[Spec]:
    if not x:
        return []
    low, high = bounds
    ends = [math.log10(times[-1].median) for times in ways.values()]
    places = apart(ends, APART * (high - low), low, high)
    font = {"size": style.sizes.text + 1}
    return [
        style.note(escape(name), x[-1], y, anchor="left middle", font=font | {"color": colour})
        | {"xshift": 14}
        for name, y, colour in zip(ways, places, colours, strict=False)
    ]
