"""The next-token prediction before and after a change: two bars per token."""

from collections.abc import Sequence

import plotly.graph_objects as go

from mha_viz.figures.base import HIDDEN, Spec, Style, hover
from mha_viz.figures.labels import row_width, token_labels
from mha_viz.figures.marks import fill, outside, row_bars
from mha_viz.figures.text import escape, format_probability
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
    """Probabilities of the tokens `labels`, the first at the top: pale before, violet after."""
    style = Style(theme, sizes)
    longest = max([*before, *after, 0.01])
    return style.figure(
        _bars(names[0], before, theme.control, -0.2, style),
        _bars(names[1], after, theme.accent, 0.2, style),
        margin={"l": row_width(labels, style, MAX_LETTERS), "r": 44, "t": 26, "b": 6},
        showlegend=True,
        legend=style.legend(),
        xaxis=HIDDEN | {"range": [0, 1.02 * longest]},
        yaxis=style.rows(token_labels(labels, MAX_LETTERS)),
    )


def _bars(name: str, values: Sequence[float], colour: str, offset: float, style: Style) -> Spec:
    rows = [row + offset for row in range(len(values))]
    return (
        row_bars(list(values), rows, 0.36, name=escape(name))
        | fill(colour)
        | outside([format_probability(p) for p in values], style.muted())
        | hover(f"{escape(name)}: %{{x:.4f}}")
    )
