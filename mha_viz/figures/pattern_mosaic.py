"""The patterns of all heads of several models on the same characters."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from mha_viz.figures.base import Style, hover
from mha_viz.figures.loss_curves import model_colour, model_name
from mha_viz.figures.marks import heatmap
from mha_viz.figures.scale import future
from mha_viz.figures.text import escape
from mha_viz.figures.theme import NORMAL, TextSizes, Theme, colorscale
from mha_viz.tokens import label
from mha_viz.trace import Array

MAX_PER_ROW = 8  # heads
LABELS_UP_TO = 4  # heads per row; with more, a cell is smaller than a letter
WIDTH = 460  # pixels of a column of the page


def pattern_mosaic(
    models: Sequence[tuple[str, Array]], sample: str, theme: Theme, *, sizes: TextSizes = NORMAL
) -> go.Figure:
    """The pattern of each head of each model, `(name, [H, T, T])`, on the characters of `sample`.

    Every model starts a new row of patterns; in a pattern, rows are queries and columns are keys.
    Cells are square as long as the figure keeps its proportions.
    """
    style, T = Style(theme, sizes), len(sample)
    most = max(len(pattern) for _, pattern in models)
    per_row = min(max(most, LABELS_UP_TO), MAX_PER_ROW)
    letters = [escape(label(c.encode("utf-8", "replace"))) for c in sample]
    weights, texts, starts = _mosaic(models, letters, per_row)
    cells = heatmap(np.sqrt(weights), 0, 1, colorscale(theme), text=texts, xgap=1, ygap=1)
    notes = [
        style.note(
            model_name(name, model_colour(theme, i)), -0.5, start - 0.6, anchor="left bottom"
        )
        for i, ((name, _), start) in enumerate(zip(models, starts, strict=True))
    ]
    rows, columns = weights.shape
    labelled = most <= LABELS_UP_TO
    across = [head * (T + 1) + i for head in range(most) for i in range(T)] if labelled else []
    down = [start + i for start in starts for i in range(T)] if labelled else []
    axis = style.axis(tickfont=style.mono(colour=theme.muted), tickangle=0)
    axis["ticklabeloverflow"] = "allow"
    left, bottom, edge = (22, 20, 2) if labelled else (2, 2, 2)
    return style.figure(
        cells | hover("%{text}") | {"showscale": False},
        margin={"l": left, "r": edge, "t": edge, "b": bottom},
        width=WIDTH,
        height=round(rows / columns * (WIDTH - left - edge)) + edge + bottom,
        annotations=[note | {"font": {"size": sizes.text + 1}} for note in notes],
        xaxis=axis | _ticks(across, letters) | {"range": [-0.6, columns - 0.4]},
        yaxis=axis | _ticks(down, letters) | {"range": [rows - 0.4, -0.6]},
    )


def _ticks(at: list[int], letters: list[str]) -> dict[str, object]:
    return {"tickvals": at, "ticktext": letters * (len(at) // len(letters))}


def _mosaic(
    models: Sequence[tuple[str, Array]], letters: Sequence[str], per_row: int
) -> tuple[Array, list[list[str]], list[int]]:
    """Weights with NaN between the patterns, a text for each cell, and each model's first row."""
    T, header, n_rows = len(letters), per_row // 2, 0
    starts: list[int] = []
    for _, pattern in models:
        starts.append(n_rows + header)
        n_rows += header - 1 + -(-len(pattern) // per_row) * (T + 1)
    mosaic = np.full((n_rows, per_row * (T + 1) - 1), np.nan, dtype=np.float32)
    texts = np.full(mosaic.shape, "", dtype=object)
    for (_, pattern), start in zip(models, starts, strict=True):
        for head, weights in enumerate(pattern):
            top, left = start + head // per_row * (T + 1), head % per_row * (T + 1)
            mosaic[top : top + T, left : left + T] = np.where(future(T, T), np.nan, weights)
            for q, k in np.argwhere(~future(T, T)).tolist():
                places = f"from {letters[q]} ({q}) to {letters[k]} ({k})"
                texts[top + q, left + k] = f"H{head}: {places}: {weights[q, k]:.3f}"
    return mosaic, texts.tolist(), starts
