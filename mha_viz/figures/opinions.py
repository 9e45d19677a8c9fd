"""The rows of weights of all heads for one query, and below them their mean: one row for all."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from mha_viz.figures.base import Spec, Style, hover
from mha_viz.figures.labels import MAX_TICKS, label_width, token_axis, token_labels, token_ticks
from mha_viz.figures.marks import gaps, heatmap, rectangle, stroke
from mha_viz.figures.theme import NORMAL, TextSizes, Theme, colorscale
from mha_viz.trace import Array

ROW, GAP = 24, 0.6  # pixels of a row; rows between the heads and the mean
MOST_ROWS = 16  # with full height; more heads share it


def opinions_figure(
    rows: Array,
    tokens: Sequence[str],
    theme: Theme,
    *,
    heads: Sequence[int],
    selected: int,
    sizes: TextSizes = NORMAL,
) -> go.Figure:
    """`rows` `[H, n]` holds the weights on the n `tokens` up to the query; colour: √ weight.

    Beside each row stands the token that it looks at most. `selected` is the index of the head
    whose name is highlighted; `heads` are their numbers.
    """
    style, (H, n) = Style(theme, sizes), rows.shape
    mean = rows.mean(axis=0, keepdims=True)
    names = [f"H{head}" for head in heads]
    names[selected] = style.selected(names[selected])
    places = [*map(float, range(H)), H + GAP]
    every = max(1, -(-H // MAX_TICKS))
    shown = [i for i in range(H) if i % every == 0 or i == selected]
    ticks = {
        "tickvals": [*(places[i] for i in shown), places[-1]],
        "ticktext": [*(names[i] for i in shown), "<b>mean</b>"],
    }
    favourites = [int(row.argmax()) for row in (*rows, mean[0])]
    said = [
        style.note(f"{token_labels([tokens[key]])[0]} {weight:.2f}", 1, place,
                   anchor="left middle", font=style.mono(), xref="paper", xshift=8)
        for key, weight, place in zip(
            favourites, [*rows.max(axis=1), mean.max()], places, strict=True
        )
    ]  # fmt: skip
    text = hover("%{customdata[0]}, %{customdata[1]}: %{customdata[2]:.3f}")
    return style.figure(
        _cells(rows, 0, theme) | text | _custom(rows, [f"H{head}" for head in heads], tokens),
        _cells(mean, H + GAP, theme) | text | _custom(mean, ["mean"], tokens),
        margin={
            "l": 52,
            "r": label_width(tokens, style) + 40,
            "t": label_width(tokens, style),
            "b": 4,
        },
        annotations=said if H <= MOST_ROWS else [said[-1]],
        shapes=[
            rectangle(key - 0.5, key + 0.5, place - 0.5, place + 0.5, **stroke(theme.query, 2))
            for key, place in zip(favourites, places, strict=True)
        ],
        xaxis=token_axis(style, side="top", tickangle=-90, range=[-0.5, n - 0.5], fixedrange=True)
        | token_ticks(tokens),
        yaxis=style.axis(range=[H + GAP + 0.5, -0.5], tickfont=style.mono()) | ticks,
    )


def opinions_height(H: int) -> int:
    """The height of the figure for H heads, in pixels, without the labels of the tokens."""
    return int(ROW * (min(H, MOST_ROWS) + 1 + GAP))


def _cells(rows: Array, y0: float, theme: Theme) -> Spec:
    z = np.sqrt(rows)
    return heatmap(z, 0, 1, colorscale(theme), showscale=False) | gaps(z) | {"y0": y0}


def _custom(rows: Array, names: Sequence[str], tokens: Sequence[str]) -> Spec:
    labels = token_labels(tokens)
    cells = [
        [[name, label, float(weight)] for label, weight in zip(labels, row, strict=True)]
        for name, row in zip(names, rows, strict=True)
    ]
    return {"customdata": np.array(cells, dtype=object)}
