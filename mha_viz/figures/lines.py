"""Measured numbers as lines: each measurement is a point, and the axes give the units."""

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from mha_viz.figures.base import Spec, Style, hover
from mha_viz.figures.marks import line, stroke, vertical_line
from mha_viz.figures.text import escape
from mha_viz.figures.theme import NORMAL, TextSizes, Theme


@dataclass(frozen=True, slots=True)
class Line:
    """A line: its name in the legend, a number for each x, and its colour.

    A `guide` is not a measurement: it is thin and dotted, without points. `ranges` are the least
    and the largest number at each x, drawn as bars.
    """

    name: str
    values: Sequence[float]
    colour: str
    guide: bool = False
    ranges: Sequence[tuple[float, float]] = ()


@dataclass(frozen=True, slots=True)
class Ticks:
    """The positions and texts of an axis's labels; without them, Plotly chooses."""

    at: Sequence[float]
    labels: Sequence[str]


def line_chart(
    x: Sequence[float],
    lines: Sequence[Line],
    theme: Theme,
    *,
    x_title: str,
    y_title: str,
    log: bool = False,
    x_ticks: Ticks | None = None,
    y_ticks: Ticks | None = None,
    x_range: tuple[float, float] | None = None,
    marked: float | None = None,
    value_format: str = "%{y:.3g}",
    sizes: TextSizes = NORMAL,
) -> go.Figure:
    """The lines over x; x may be longer than a line that is still being measured.

    `log` makes both axes logarithmic; otherwise the y axis starts at 0. `marked` is an x with an
    orange line. `value_format` is how the hover of a point writes its y.
    """
    style = Style(theme, sizes)
    kind = "log" if log else "linear"
    x_axis = style.axis(x_title, grid=True, type=kind) | _ticks(x_ticks)
    y_axis = style.axis(y_title, grid=True, type=kind) | _ticks(y_ticks)
    mark = {"layer": "below"} | stroke(theme.query, 2)
    return style.figure(
        *(_line(x, each, value_format, theme) for each in lines),
        margin={"l": 68, "r": 16, "t": 34, "b": 46},
        shapes=[] if marked is None else [vertical_line(marked) | mark],
        showlegend=len(lines) > 1,
        legend=style.legend(clickable=False),
        xaxis=x_axis | ({"range": list(x_range)} if x_range else {}),
        yaxis=y_axis | ({} if log else {"rangemode": "tozero"}),
    )


def _line(x: Sequence[float], each: Line, value_format: str, theme: Theme) -> Spec:
    name, measured = escape(each.name), list(x[: len(each.values)])
    drawn = line(measured, list(each.values), each.colour, 1.5 if each.guide else 2, name=name)
    drawn["cliponaxis"] = False
    if each.guide:
        drawn["line"]["dash"] = "dot"
        return drawn
    if each.ranges:
        drawn["error_y"] = {
            "type": "data",
            "symmetric": False,
            "array": [high - y for y, (_, high) in zip(each.values, each.ranges, strict=True)],
            "arrayminus": [y - low for y, (low, _) in zip(each.values, each.ranges, strict=True)],
            "color": each.colour,
            "thickness": 1,
            "width": 3,
        }
    edge = {"color": theme.page, "width": 1}
    points = {"mode": "lines+markers", "marker": {"size": 7, "color": each.colour, "line": edge}}
    return drawn | points | {"hoverinfo": "all"} | hover(f"{name}, %{{x}}: {value_format}")


def _ticks(ticks: Ticks | None) -> Spec:
    return {} if ticks is None else {"tickvals": list(ticks.at), "ticktext": list(ticks.labels)}
