"""A number of each head before and after a change: two bars per head, from zero."""

from collections.abc import Sequence

import plotly.graph_objects as go

from mha_viz.figures.base import HIDDEN, Style
from mha_viz.figures.labels import row_width, token_labels
from mha_viz.figures.marks import stroke, vertical_line
from mha_viz.figures.paired_bars import paired_bars
from mha_viz.figures.text import with_minus
from mha_viz.figures.theme import NORMAL, TextSizes, Theme

ROW = 34  # pixels


def paired_effects(
    labels: Sequence[str],
    before: Sequence[float],
    after: Sequence[float],
    theme: Theme,
    *,
    names: tuple[str, str] = ("before", "after"),
    sizes: TextSizes = NORMAL,
) -> go.Figure:
    """The effects of each head, the first at the top: grey before, violet after; NaN has no bar."""
    style = Style(theme, sizes)
    every = [value for value in (*before, *after, 0.0) if value == value]
    low, high = min(every), max(every)
    room = 0.25 * ((high - low) or 1.0)
    return style.figure(
        *paired_bars(names, before, after, style, text=_text, number="+.3f"),
        margin={"l": row_width(labels, style), "r": 8, "t": 26, "b": 6},
        shapes=[vertical_line(0, **stroke(theme.control, 1))],
        showlegend=True,
        legend=style.legend(),
        xaxis=HIDDEN | {"range": [low - room * (low < 0), high + room]},
        yaxis=style.rows(token_labels(labels)),
    )


def height(n: int) -> int:
    """The height for n heads, in pixels."""
    return 32 + ROW * n


def _text(value: float) -> str:
    return with_minus(f"{value:+.1f}") if value == value else ""
