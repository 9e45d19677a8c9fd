"""Loss over the number of heads removed: a line for each order, a band for random orders."""

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from mha_viz.figures.base import Spec, Style, hover
from mha_viz.figures.marks import horizontal_line, line, stroke
from mha_viz.figures.text import escape
from mha_viz.figures.theme import NORMAL, TextSizes, Theme


@dataclass(frozen=True, slots=True)
class Curve:
    """A line over the number of heads removed, `x`, with a band if `low` and `high` are given."""

    name: str
    x: Sequence[int]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()


def pruning_curves(
    curves: Sequence[Curve],
    theme: Theme,
    *,
    uniform: float | None,
    budget: float | None,
    title: str,
    sizes: TextSizes = NORMAL,
) -> go.Figure:
    """The curves, with a legend above; `uniform` and `budget` are dashed horizontal lines."""
    style = Style(theme, sizes)
    colours = [theme.accent, theme.query, theme.key, theme.value, *theme.categorical]
    traces: list[Spec] = []
    for curve, colour in zip(curves, colours, strict=False):
        if curve.low:
            traces.append(_band(curve, theme))
        traces.append(_line(curve, theme.control if curve.low else colour))
    levels = [
        horizontal_line(y, **stroke(colour, 1, "dash"))
        for y, colour in ((uniform, theme.muted), (budget, theme.query))
        if y is not None
    ]
    return style.figure(
        *traces,
        margin={"l": 56, "r": 8, "t": 30, "b": 46},
        showlegend=len(curves) > 1,
        legend=style.legend(),
        shapes=levels,
        xaxis=style.axis("heads removed", nticks=8, rangemode="tozero"),
        yaxis=style.axis(title, grid=True, nticks=8),
    )


def _line(curve: Curve, colour: str) -> Spec:
    name = escape(curve.name)
    text = {"hoverinfo": "all"} | hover(f"{name}: %{{x}} heads removed, %{{y:.4f}}")
    return line(list(curve.x), list(curve.y), colour, 2.5, name=name, cliponaxis=False) | text


def _band(curve: Curve, theme: Theme) -> Spec:
    x, y = [*curve.x, *reversed(curve.x)], [*curve.high, *reversed(curve.low)]
    filled = {"fill": "toself", "fillcolor": theme.control, "opacity": 0.25, "showlegend": False}
    return line(x, y, theme.control, 0) | filled
