"""Losses during training on a logarithmic scale, with the name and the last loss at each end."""

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from mha_viz.figures.base import Spec, Style, hover
from mha_viz.figures.lines import Line
from mha_viz.figures.marks import line
from mha_viz.figures.text import escape, text_width
from mha_viz.figures.theme import NORMAL, TextSizes, Theme

TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50)
NEAR = (0.5, 0.7, 1, 1.5, 2, 2.5, 3, 3.5, 4, 5)  # where the losses are within a factor of 5
APART = 0.13  # the least distance of two labels, as a share of the height


def trained_losses(
    steps: Sequence[int], lines: Sequence[Line], theme: Theme, *, sizes: TextSizes = NORMAL
) -> go.Figure:
    """The losses over the steps; each is positive. Labels at the ends keep their distance."""
    style = Style(theme, sizes)
    low, high = (
        math.log10(edge(value for each in lines for value in each.values)) for edge in (min, max)
    )
    room = max(0.08 * (high - low), 0.02)
    low, high = low - room, high + room
    ends = _spread([math.log10(each.values[-1]) for each in lines], APART * (high - low))
    names = [f"{each.name} {each.values[-1]:.3f}" for each in lines]
    at = NEAR if high - low < math.log10(5) else TICKS
    ticks = {"tickvals": at, "ticktext": [f"{tick:g}" for tick in at]}
    return style.figure(
        *(_drawn(steps, each) for each in lines),
        margin={
            "l": 3 * sizes.text,
            "r": text_width(names, sizes.text + 1) * 0.92 + 8,
            "t": 6,
            "b": 2 * sizes.text,
        },
        annotations=[
            _end(each, steps[-1], end, style) for each, end in zip(lines, ends, strict=True)
        ],
        xaxis=style.axis(range=[0, steps[-1]], tickformat=",d", nticks=4, tickangle=0),
        yaxis=style.axis(grid=True, type="log", range=[low, high]) | ticks,
    )


def _drawn(steps: Sequence[int], each: Line) -> Spec:
    text = hover(f"{escape(each.name)}, step %{{x:,}}: %{{y:.3f}}")
    drawn = line(list(steps), list(each.values), each.colour, 2.5, name=escape(each.name))
    return drawn | {"hoverinfo": "all", "cliponaxis": False} | text


def _end(each: Line, x: float, y: float, style: Style) -> Spec:
    # On a logarithmic axis, Plotly places annotations by the logarithm.
    text = (
        f'<span style="color:{each.colour}">{escape(each.name)}</span> <b>{each.values[-1]:.3f}</b>'
    )
    return style.note(text, x, y, anchor="left middle", font=style.ink(1)) | {"xshift": 6}


def _spread(values: Sequence[float], apart: float) -> list[float]:
    """The values, moved up where one is closer than `apart` to the one below."""
    moved, floor = list(values), -math.inf
    for i in sorted(range(len(values)), key=values.__getitem__):
        moved[i] = floor = max(values[i], floor + apart)
    return moved
