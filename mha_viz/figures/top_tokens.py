"""The most likely next tokens of several models, one list below the other."""

from collections.abc import Sequence

import plotly.graph_objects as go

from mha_viz.figures.base import HIDDEN, Spec, Style, hover
from mha_viz.figures.labels import row_width, token_labels
from mha_viz.figures.marks import fill, outside, row_bars
from mha_viz.figures.text import escape, format_probability
from mha_viz.figures.theme import NORMAL, TextSizes, Theme

MAX_LETTERS = 10  # of a token
Guess = tuple[str, float]  # a token and its probability


def top_tokens(
    lists: Sequence[tuple[str, Sequence[Guess]]], theme: Theme, *, sizes: TextSizes = NORMAL
) -> go.Figure:
    """For each list, its name on a line of its own, then its tokens as bars."""
    style = Style(theme, sizes)
    traces: list[Spec] = []
    rows: list[str] = []
    notes: list[Spec] = []
    for name, guesses in lists:
        notes.append(style.note(f"<b>{escape(name)}</b>", 0, len(rows), anchor="left middle"))
        rows.append("")
        traces.append(_bars(name, guesses, len(rows), style))
        rows += token_labels([token for token, _ in guesses], MAX_LETTERS)
    tokens = [token for _, guesses in lists for token, _ in guesses]
    return style.figure(
        *traces,
        margin={"l": row_width(tokens, style, MAX_LETTERS), "r": 40, "t": 2, "b": 2},
        annotations=[note | {"font": style.ink(1)} for note in notes],
        xaxis=HIDDEN | {"range": [0, 1]},
        yaxis=style.rows(rows),
    )


def _bars(name: str, guesses: Sequence[Guess], first: int, style: Style) -> Spec:
    rows = list(range(first, first + len(guesses)))
    probabilities = [p for _, p in guesses]
    texts = outside([format_probability(p) for p in probabilities], style.mono())
    text = hover(f"{escape(name)}: %{{x:.4f}}")
    return row_bars(probabilities, rows, 0.6) | fill(style.theme.accent) | texts | text
