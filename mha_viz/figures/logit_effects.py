"""A head's direct effect on next-token logits: a bar per token, orange if positive, else blue."""

from collections.abc import Sequence

import plotly.graph_objects as go

from mha_viz.figures.base import HIDDEN, Style, hover
from mha_viz.figures.labels import row_width, token_labels
from mha_viz.figures.marks import fill, outside, row_bars, stroke, vertical_line
from mha_viz.figures.text import with_minus
from mha_viz.figures.theme import NORMAL, TextSizes, Theme

MAX_LETTERS = 14  # of a token
ROW = 21  # pixels


def logit_effects(
    labels: Sequence[str], effects: Sequence[float], theme: Theme, *, sizes: TextSizes = NORMAL
) -> go.Figure:
    """The effect on the logit of each token, the first at the top; bars start at zero."""
    style, names = Style(theme, sizes), token_labels(labels, MAX_LETTERS)
    low, high = min(0.0, *effects), max(0.0, *effects)
    room = 0.2 * ((high - low) or 1.0)
    colours = [theme.diverging[7 if effect >= 0 else 2] for effect in effects]
    bars = (
        row_bars(list(effects), list(range(len(labels))), 0.74, customdata=names)
        | fill(colours)
        | outside([with_minus(f"{effect:+.3f}") for effect in effects], style.muted())
        | hover("%{customdata}: %{x:+.4g}")
    )
    return style.figure(
        bars,
        margin={"l": row_width(labels, style, MAX_LETTERS), "r": 8, "t": 6, "b": 6},
        shapes=[vertical_line(0, **stroke(theme.control, 1))],
        xaxis=HIDDEN | {"range": [low - room * (low < 0), high + room * (high > 0)]},
        yaxis=style.rows(names),
    )


def height(n: int) -> int:
    """The height for n tokens, in pixels."""
    return ROW * n + 12
