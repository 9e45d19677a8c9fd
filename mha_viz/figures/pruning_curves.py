"""Loss against heads removed: a line for each order, a band for several shuffles."""

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from mha_viz.figures.theme import NORMAL, SANS, Theme, Type


@dataclass(frozen=True, slots=True)
class Curve:
    """A line, and where there is one its band; x is the number of heads removed."""

    name: str
    x: Sequence[int]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()


def pruning_curves(
    curves: Sequence[Curve],
    theme: Theme,
    *,
    level: float | None,
    budget: float | None,
    title: str,
    sizes: Type = NORMAL,
) -> go.Figure:
    """The curves, named above; `level` and `budget` are dashed lines across."""
    data: list[dict[str, object]] = []
    colours = [theme.accent, theme.query, theme.key, theme.value, *theme.categorical]
    for curve, colour in zip(curves, colours, strict=False):
        tint = theme.control if curve.low else colour
        if curve.low:
            data.append(_band(curve, theme))
        data.append(_line(curve, tint))
    font = {"size": sizes.tick, "color": theme.muted}
    axis = {
        "fixedrange": True, "zeroline": False, "gridcolor": theme.hairline, "ticks": "",
        "nticks": 8, "tickfont": font,
        "title": {"font": {"size": sizes.note, "color": theme.muted}},
    }  # fmt: skip
    lines = [
        {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": y, "y1": y,
         "line": {"color": colour, "width": 1, "dash": "dash"}}
        for y, colour in ((level, theme.muted), (budget, theme.query))
        if y is not None
    ]  # fmt: skip
    layout = {
        "template": "none", "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": 56, "r": 8, "t": 30, "b": 46}, "dragmode": False,
        "legend": {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom",
                   "font": {"size": sizes.note + 1, "color": theme.ink}},
        "font": {"family": SANS, "color": theme.ink}, "hovermode": "closest", "shapes": lines,
        "hoverlabel": {"bgcolor": theme.surface, "bordercolor": theme.query,
                       "font": {"family": SANS, "size": sizes.tick + 1, "color": theme.ink}},
        "xaxis": axis | {"title": {**axis["title"], "text": "heads removed"},  # type: ignore[dict-item]
                         "showgrid": False, "rangemode": "tozero"},
        "yaxis": axis | {"title": {**axis["title"], "text": title}},  # type: ignore[dict-item]
    }  # fmt: skip
    return go.Figure(data=data, layout=layout)


def _line(curve: Curve, colour: str) -> dict[str, object]:
    return {
        "type": "scatter", "mode": "lines", "x": list(curve.x), "y": list(curve.y),
        "name": curve.name, "line": {"color": colour, "width": 2.5}, "cliponaxis": False,
        "hovertemplate": f"{curve.name}: %{{x}} heads gone, %{{y:.4f}}<extra></extra>",
    }  # fmt: skip


def _band(curve: Curve, theme: Theme) -> dict[str, object]:
    return {
        "type": "scatter", "mode": "lines", "x": [*curve.x, *reversed(curve.x)],
        "y": [*curve.high, *reversed(curve.low)], "fill": "toself", "hoverinfo": "skip",
        "line": {"width": 0}, "fillcolor": theme.control, "opacity": 0.25, "name": curve.name,
        "showlegend": False,
    }  # fmt: skip
