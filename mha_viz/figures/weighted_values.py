"""One row of w @ v = z: each weight beside the row of v that it multiplies, and z, their sum."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from mha_viz.figures.base import HIDDEN, Spec, Style, hover
from mha_viz.figures.labels import row_width, token_labels
from mha_viz.figures.marks import line
from mha_viz.figures.matrices import (
    between,
    cells_of,
    labelled_rows,
    magnitude,
    rings,
    signed_cells,
)
from mha_viz.figures.text import format_probability
from mha_viz.figures.theme import NORMAL, TextSizes, Theme, colorscale
from mha_viz.trace import Array

WIDTH, WEIGHTS, V_FROM = 1000.0, 120.0, 140.0  # units across: all, the weights, where v begins
ROW, Z_ROW, TALLEST = 20.0, 24.0, 320.0  # pixels: a key, z, all keys
SUM_GAP = 14.0  # pixels between the keys and z
TOP = 22
MAX_ROWS, MAX_COLUMNS = 256, 128  # cells


def weighted_values_figure(
    weights: Array,
    values: Array,
    z: Array,
    tokens: Sequence[str],
    theme: Theme,
    *,
    n_seen: int,
    query: int,
    sizes: TextSizes = NORMAL,
) -> go.Figure:
    """`weights` `[T]` beside the rows of `values` `[T, d_h]`, and under them their sum `z` `[d_h]`.

    The query may look at the first `n_seen` keys; the rows after them are empty. Weights are
    coloured by their square root; v and z share one scale.
    """
    style, T = Style(theme, sizes), len(weights)
    row = _row(T)
    bottom, end = row * T + SUM_GAP, row * T + SUM_GAP + Z_ROW
    seen = np.where(np.arange(T)[:, None] < n_seen, values, np.float32(np.nan))
    v, z_cells = cells_of(seen, MAX_ROWS, MAX_COLUMNS), cells_of(z[None], 1, MAX_COLUMNS)
    columns = between(V_FROM, WIDTH, v.values.shape[1])
    top = magnitude(seen)
    thin = {"xgap": 1 if v.values.shape[1] <= 64 else 0, "ygap": 1 if row >= 8 else 0}
    rule = line(np.array([0, WIDTH]), np.full(2, bottom - SUM_GAP / 2), theme.ink, 1.5)
    drawn_z = signed_cells(z_cells, columns, between(bottom, end, 1), top, theme, "z")
    return style.figure(
        _weights(weights, n_seen, row, theme) | {"ygap": thin["ygap"]},
        signed_cells(v, columns, between(0, row * T, len(v.values)), top, theme, "v") | thin,
        drawn_z | hover(f"z[{query}, %{{customdata[2]}}] = %{{customdata[0]:.4f}}") | thin,
        rule,
        margin={"l": row_width([*tokens, "hidden"], style), "r": 4, "t": TOP, "b": 4},
        shapes=rings((V_FROM, WIDTH), (bottom, end), theme.query, theme),
        annotations=[
            *_numbers(weights, n_seen, row, style),
            *_titles((bottom + end) / 2, style),
        ],
        xaxis=HIDDEN | {"range": [0, WIDTH + 2]},
        yaxis=labelled_rows(token_labels(tokens), query, 0, row, style, range=[end + 2, -1]),
    )


def weighted_values_height(T: int) -> int:
    """The height of the figure for T keys, in pixels."""
    return int(TOP + _row(T) * T + SUM_GAP + Z_ROW + 7)


def _row(T: int) -> float:
    return min(ROW, TALLEST / T)


def _weights(weights: Array, n_seen: int, row: float, theme: Theme) -> Spec:
    """A violet cell for each key that the query may look at."""
    T = len(weights)
    seen = np.where(np.arange(T) < n_seen, weights, np.float32(np.nan))[:, None]
    scale = {"zmin": 0, "zmax": 1, "colorscale": colorscale(theme), "showscale": False}
    place = {"x": between(0, WEIGHTS, 1), "y": between(0, row * T, T), "hoverongaps": False}
    cells = {"type": "heatmap", "z": np.sqrt(seen), "customdata": seen} | scale | place
    return cells | hover("weight %{customdata:.4f}")


def _numbers(weights: Array, n_seen: int, row: float, style: Style) -> list[Spec]:
    """The weights in their cells, where rows are high enough for text."""
    if row < style.sizes.text + 3:
        return []
    theme, notes = style.theme, []
    for t, weight in enumerate(weights.tolist()):
        strong = weight**0.5 > theme.ink_flips_at
        colour = theme.ink_on_strong if strong else theme.ink
        text, font = format_probability(weight), style.mono(0, colour)
        if t >= n_seen:
            text, font = "hidden", style.muted()
        text = text.replace("<", "&lt;")
        place = WEIGHTS / 2, row * (t + 0.5)
        notes.append(style.note(text, *place, anchor="center middle", font=font))
    return notes


def _titles(z_at: float, style: Style) -> list[Spec]:
    bold = {"font": style.ink(1)}
    return [
        style.note("<b>w</b>", WEIGHTS / 2, 0, anchor="center bottom") | bold,
        style.note("<b>v</b>", (V_FROM + WIDTH) / 2, 0, anchor="center bottom") | bold,
        style.note("sum = <b>z</b>", V_FROM - 6, z_at, anchor="right middle") | bold,
    ]
