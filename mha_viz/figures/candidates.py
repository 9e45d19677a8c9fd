"""The candidates for the next token at one step, with model and sampling probabilities."""

from collections.abc import Sequence

import plotly.graph_objects as go

from mha_viz.figures.base import HIDDEN, Spec, Style, hover
from mha_viz.figures.labels import row_width, token_labels
from mha_viz.figures.marks import fill, outside, row_bars, stroke
from mha_viz.figures.text import format_probability
from mha_viz.figures.theme import NORMAL, TextSizes, Theme

MAX_LETTERS = 14  # of a token
ROW = 30  # pixels


def candidates_figure(
    labels: Sequence[str],
    before: Sequence[float],
    after: Sequence[float] | None,
    selected: int,
    theme: Theme,
    *,
    sizes: TextSizes = NORMAL,
) -> go.Figure:
    """Bars of probability, the most likely token at the top, the row `selected` outlined in orange.

    `before` are the model's probabilities, in violet. With `after`, they are pale, and violet is
    the distribution that was sampled from, in which a filtered token has no bar.
    """
    style = Style(theme, sizes)
    if after is None:
        bars = [_bars("model", before, theme.accent, 0.0, 0.6, style)]
    else:
        bars = [
            _bars("model", before, theme.control, -0.2, 0.36, style),
            _bars("sampled from", after, theme.accent, 0.2, 0.36, style),
        ]
    top = max([*before, *(after or ())]) or 1.0
    names = token_labels(labels, MAX_LETTERS)
    names[selected] = style.selected(names[selected])
    outline = {"type": "rect", "y0": selected - 0.47, "y1": selected + 0.47}
    across = {"xref": "paper", "x0": 0, "x1": 1}
    return style.figure(
        *bars,
        margin={
            "l": row_width(labels, style, MAX_LETTERS),
            "r": 6,
            "t": 26 if after else 4,
            "b": 4,
        },
        shapes=[outline | across | stroke(theme.query, 2)],
        showlegend=after is not None,
        legend=style.legend(clickable=False),
        xaxis=HIDDEN | {"range": [0, 1.25 * top]},  # room for the number of the longest bar
        yaxis=style.rows(names),
    )


def height(n: int) -> int:
    """The height for n candidates, in pixels."""
    return 30 + n * ROW


def _bars(
    name: str, values: Sequence[float], colour: str, offset: float, width: float, style: Style
) -> Spec:
    rows = [row + offset for row in range(len(values))]
    texts = [format_probability(p) if p else "filtered out" for p in values]
    return (
        row_bars(list(values), rows, width, name=name)
        | fill(colour)
        | outside(texts, style.muted())
        | hover(f"{name}: %{{x:.4g}}")
    )
