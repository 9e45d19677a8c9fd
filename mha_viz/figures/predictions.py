"""The next-token prediction before and after a change: two bars per token."""

from collections.abc import Sequence

import plotly.graph_objects as go

from mha_viz.figures.base import HIDDEN, Style
from mha_viz.figures.labels import row_width, token_labels
from mha_viz.figures.paired_bars import paired_bars
from mha_viz.figures.text import format_probability
from mha_viz.figures.theme import NORMAL, TextSizes, Theme

MAX_LETTERS = 14  # of a token


def compare_predictions(
    labels: Sequence[str],
    before: Sequence[float],
    after: Sequence[float],
    theme: Theme,
    *,
    names: tuple[str, str] = ("before", "after"),
    sizes: TextSizes = NORMAL,
) -> go.Figure:
    """Probabilities of the tokens `labels`, the first at the top: grey before, violet after."""
    style = Style(theme, sizes)
    longest = max([*before, *after, 0.01])
    return style.figure(
        *paired_bars(names, before, after, style, text=format_probability, number=".4f"),
        margin={"l": row_width(labels, style, MAX_LETTERS), "r": 44, "t": 26, "b": 6},
        showlegend=True,
        legend=style.legend(),
        xaxis=HIDDEN | {"range": [0, 1.02 * longest]},
        yaxis=style.rows(token_labels(labels, MAX_LETTERS)),
    )
