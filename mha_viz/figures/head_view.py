"""What heads look at, as lines between two rows of tokens, for files and notebooks.

The page draws the same lines on a canvas, where the lines of the token under the pointer light up.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from mha_viz.analysis.dot_product import Lines, strongest
from mha_viz.figures.base import BARE, Spec, Style, hover
from mha_viz.figures.labels import label_width, token_ticks
from mha_viz.figures.marks import line
from mha_viz.figures.text import escape
from mha_viz.figures.theme import NORMAL, TextSizes, Theme

MAX_LINES = 3000  # of all heads together; more would be one grey area
STRENGTHS = 10  # the lines of one head and strength are one trace
PITCH, LONGEST = 21, 960  # pixels per token, and at most for all tokens
ACROSS = 300  # pixels between the rows when they run from left to right
LANE = 0.12  # tokens between the lines of two heads


def head_view(
    heads: Sequence[tuple[str, Lines]],
    tokens: Sequence[str],
    theme: Theme,
    *,
    upright: bool = True,
    sizes: TextSizes = NORMAL,
) -> go.Figure:
    """The lines of each named head in its colour, from each query to the tokens it looks at.

    Queries are at the left, or above if not `upright`. A line is stronger for a larger weight (√).
    Beyond MAX_LINES, only the strongest are drawn.
    """
    style = Style(theme, sizes)
    length, width = min(LONGEST, PITCH * len(tokens)), label_width(tokens, style)
    thickest = min(3.0, 0.4 + length / len(tokens) / 6)
    kept = strongest([lines for _, lines in heads], MAX_LINES)
    traces: list[Spec] = []
    for number, ((name, _), lines) in enumerate(zip(heads, kept, strict=True)):
        # With several heads, each has a lane of its own, so that no line hides another.
        lane = (number - (len(heads) - 1) / 2) * min(LANE, 0.7 / len(heads))
        pen = _Pen(theme.categorical[number % 8], thickest, upright, lane)
        traces += _of_head(name, lines, pen)
    # Plotly draws the labels of a second axis only while a trace lies on it.
    second = {"yaxis": "y2"} if upright else {"xaxis": "x2"}
    traces.append(line([None], [None], theme.ink, 2, showlegend=False, **second))
    legend = {"orientation": "h", "x": 0, "yref": "container", "y": 0, "yanchor": "bottom"}
    margin = {"l": 12, "r": 12, "t": width, "b": width + 34}
    height = ACROSS + 2 * width + 34
    if upright:
        margin, height = {"l": width, "r": width, "t": 34, "b": 40}, float(length + 74)
    return style.figure(
        *traces,
        margin=margin,
        height=height,
        showlegend=True,
        legend=legend | {"font": style.ink(1)},
        **_axes(tokens, style, upright),
    )


@dataclass(frozen=True, slots=True)
class _Pen:
    """How the lines of one head are drawn."""

    colour: str
    thickest: float
    upright: bool
    lane: float

    def line(self, along: np.ndarray, across: np.ndarray, strength: float) -> Spec:
        """Lines of one strength from 0 to 1."""
        x, y = (across, along) if self.upright else (along, across)
        drawn = line(x, y, self.colour, max(0.5, self.thickest * strength))
        return drawn | {"opacity": 0.1 + 0.9 * strength**1.5}


def _of_head(name: str, lines: Lines, pen: _Pen) -> list[Spec]:
    """A trace for each strength; the first one stands for the head in the legend."""
    shown = {"name": escape(name), "legendgroup": name}
    if not len(lines):  # the legend also names a head without lines
        return [line([None], [None], pen.colour, 2) | shown]
    levels = np.minimum(STRENGTHS - 1, (np.sqrt(lines.weights) * STRENGTHS).astype(int))
    traces: list[Spec] = []
    for level in np.unique(levels)[::-1]:
        at = levels == level
        along = _broken(lines.queries[at] + pen.lane, lines.keys[at] + pen.lane)
        across = _broken(np.zeros(int(at.sum())), np.ones(int(at.sum())))
        drawn = pen.line(along, across, (float(level) + 0.5) / STRENGTHS)
        weights = {"hoverinfo": "all", "customdata": np.repeat(lines.weights[at], 3)}
        text = hover(f"{escape(name)}: %{{customdata:.3f}}")
        traces.append(drawn | shown | weights | text | {"showlegend": not traces})
    return traces


def _broken(begin: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Begin and end of each line, and NaN after it, which interrupts the trace."""
    return np.stack([begin, end, np.full(len(begin), np.nan)], axis=1).ravel()


def _axes(tokens: Sequence[str], style: Style, upright: bool) -> dict[str, Spec]:
    ends = {"range": [-0.5, len(tokens) - 0.5], "ticklabeloverflow": "allow"}
    rows = BARE | ends | {"fixedrange": True, "tickfont": style.mono()} | token_ticks(tokens)
    sides = style.axis(tickvals=[0, 1], ticktext=["looks from", "looks at"])
    if not upright:
        turned = rows | {"tickangle": -90}
        return {
            "xaxis": turned | {"side": "top"},
            "xaxis2": turned | {"overlaying": "x", "side": "bottom"},
            "yaxis": sides | {"range": [1, 0], "visible": False},
        }
    down = rows | {"range": [len(tokens) - 0.5, -0.5]}
    return {
        "xaxis": sides | {"range": [0, 1], "side": "top"},
        "yaxis": down,
        "yaxis2": down | {"overlaying": "y", "side": "right"},
    }
