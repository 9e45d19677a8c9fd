"""A few measured numbers as lines: each measurement is a point, and the axes say their units."""

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from mha_viz.figures.text import literal
from mha_viz.figures.theme import MONO, NORMAL, SANS, Theme, Type


@dataclass(frozen=True, slots=True)
class Line:
    """One line: its name in the legend, a number for each x, and how it is drawn.

    A `guide` has no points, is thin and dashed, and is no measurement.
    """

    name: str
    values: Sequence[float]
    colour: str
    guide: bool = False


@dataclass(frozen=True, slots=True)
class Ticks:
    """Where an axis has labels, and which; without them Plotly chooses."""

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
    hover: str = "%{y:.3g}",
    sizes: Type = NORMAL,
) -> go.Figure:
    """The lines over x, which may be longer than a line that is still being measured.

    `log` makes both axes logarithmic; without it the y axis begins at 0 unless values lie far
    from it. `marked` is an x that stands out in orange. `hover` is what a point says of its y.
    """
    data = [_line(x, line, hover, theme) for line in lines]
    shapes = []
    if marked is not None:
        shapes.append(
            {"type": "line", "xref": "x", "yref": "paper", "x0": marked, "x1": marked, "y0": 0,
             "y1": 1, "line": {"color": theme.query, "width": 2}, "layer": "below"}
        )  # fmt: skip
    axis = {
        "gridcolor": theme.hairline, "zeroline": False, "ticks": "", "fixedrange": True,
        "type": "log" if log else "linear", "showline": False,
        "tickfont": {"size": sizes.tick, "color": theme.muted},
        "title": {"font": {"size": sizes.note, "color": theme.muted}, "standoff": 6},
    }  # fmt: skip
    layout = {
        "template": "none", "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": 68, "r": 16, "t": 34, "b": 46}, "dragmode": False, "shapes": shapes,
        "font": {"family": SANS, "color": theme.ink}, "hovermode": "closest",
        "showlegend": len(lines) > 1,
        "legend": {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "itemclick": False,
                   "itemdoubleclick": False,
                   "font": {"size": sizes.note + 1, "color": theme.ink}},
        "hoverlabel": {"bgcolor": theme.surface, "bordercolor": theme.query,
                       "font": {"family": MONO, "size": sizes.tick + 1, "color": theme.ink}},
        "xaxis": _axis(axis, x_title, x_ticks) | ({"range": list(x_range)} if x_range else {}),
        "yaxis": _axis(axis, y_title, y_ticks) | ({} if log else {"rangemode": "tozero"}),
    }  # fmt: skip
    return go.Figure(data=data, layout=layout)


def _line(x: Sequence[float], line: Line, hover: str, theme: Theme) -> dict[str, object]:
    shown = x[: len(line.values)]
    found: dict[str, object] = {
        "type": "scatter", "x": list(shown), "y": list(line.values), "name": literal(line.name),
        "line": {"color": line.colour, "width": 1.5 if line.guide else 2,
                 "dash": "dot" if line.guide else "solid"},
        "mode": "lines" if line.guide else "lines+markers", "cliponaxis": False,
    }  # fmt: skip
    if line.guide:
        return found | {"hoverinfo": "skip"}
    return found | {
        "marker": {"size": 7, "color": line.colour, "line": {"color": theme.page, "width": 1}},
        "hovertemplate": f"{literal(line.name)}, %{{x}}: {hover}<extra></extra>",
    }


def _axis(axis: dict[str, object], title: str, ticks: Ticks | None) -> dict[str, object]:
    font = axis["title"]
    assert isinstance(font, dict)
    found = axis | {"title": {**font, "text": literal(title)}}
    if ticks is not None:
        found |= {"tickvals": list(ticks.at), "ticktext": list(ticks.labels)}
    return found
