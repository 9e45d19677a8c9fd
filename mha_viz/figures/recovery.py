"""Held-out losses while converted models are trained further."""

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from mha_viz.figures.base import Spec, Style, hover
from mha_viz.figures.labels import apart
from mha_viz.figures.marks import line
from mha_viz.figures.text import escape, text_width
from mha_viz.figures.theme import NORMAL, TextSizes, Theme

APART = 0.085  # between the labels at the ends of lines, as a share of the height


@dataclass(frozen=True, slots=True)
class RecoveryCurve:
    """The losses after some steps. The `control` is dashed; a `live` run has diamonds."""

    name: str
    steps: Sequence[int]
    losses: Sequence[float]
    control: bool = False
    live: bool = False


def recovery_figure(
    curves: Sequence[RecoveryCurve],
    theme: Theme,
    *,
    selected: str = "",
    sizes: TextSizes = NORMAL,
) -> go.Figure:
    """Loss over step on a square-root axis, with name and last loss at the end of each line.

    The curve of the `selected` name is orange.
    """
    style = Style(theme, sizes)
    shades = [theme.sequential[i] for i in ((5, 7, 9) if theme.name == "light" else (5, 6, 8))]
    plain = [curve for curve in curves if not curve.control and not curve.live]
    colours: dict[str, str] = {
        curve.name: shades[min(i, len(shades) - 1)] for i, curve in enumerate(plain)
    }
    colours |= {curve.name: theme.muted for curve in curves if curve.control}
    colours |= {selected: theme.query}
    values = [loss for curve in curves for loss in curve.losses] or [0.0, 1.0]
    room = 0.06 * (max(values) - min(values)) or 1.0
    low, high = min(values) - room, max(values) + room
    named = [curve for curve in curves if not curve.live and curve.losses]
    labels = [f"{curve.name}  {curve.losses[-1]:.2f}" for curve in named]
    ticks = sorted({step for curve in curves for step in curve.steps})
    last = max(ticks, default=1)
    shown = [step for step in ticks if step in (0, last) or step >= 0.04 * last]
    places = apart([curve.losses[-1] for curve in named], APART * (high - low), low, high)
    x_axis = style.axis("steps (square-root axis)", tickvals=[step**0.5 for step in shown])
    return style.figure(
        *(_curve(curve, colours.get(curve.name, theme.ink)) for curve in curves),
        margin={"l": 46, "r": text_width(labels, sizes.text) + 12, "t": 8, "b": 46},
        annotations=[
            style.note(escape(label), max(curve.steps) ** 0.5, y, anchor="left middle")
            | {"xshift": 8, "font": {"size": sizes.text + 1, "color": colours[curve.name]}}
            for curve, label, y in zip(named, labels, places, strict=True)
        ],
        xaxis=x_axis | {"ticktext": [f"{n:,}" for n in shown], "range": [-0.3, last**0.5]},
        yaxis=style.axis("loss, nats per token", grid=True, range=[low, high], nticks=6),
    )


def _curve(curve: RecoveryCurve, colour: str) -> Spec:
    x = [step**0.5 for step in curve.steps]
    drawn = line(x, list(curve.losses), colour, 2.5, name=escape(curve.name), cliponaxis=False)
    drawn["line"]["dash"] = "dash" if curve.control else "solid"
    marker: Spec = {"size": 7, "color": colour}
    if curve.live:
        drawn["line"] |= {"width": 1, "dash": "dot"}
        marker = {"size": 13, "color": colour, "symbol": "diamond-open", "line": {"width": 2}}
    text = f"{escape(curve.name)} after %{{customdata}} steps: %{{y:.3f}}"
    points = {"mode": "lines+markers", "marker": marker, "customdata": list(curve.steps)}
    return drawn | points | {"hoverinfo": "all"} | hover(text)
