"""The values of a matrix as a heatmap: blue below zero and orange above, or violet for weights."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from mha_viz.figures.base import Style, hover
from mha_viz.figures.labels import MAX_LETTERS, MAX_TICKS, token_axis, token_ticks
from mha_viz.figures.marks import heatmap
from mha_viz.figures.pooling import pool_by_magnitude
from mha_viz.figures.scale import root_ticks
from mha_viz.figures.text import escape, text_width, with_minus
from mha_viz.figures.theme import NORMAL, TextSizes, Theme, colorscale, diverging_scale
from mha_viz.figures.window import MAX_CELLS
from mha_viz.tokens import shorten
from mha_viz.trace import Array


def matrix_heatmap(
    values: Array,
    theme: Theme,
    *,
    rows: str,
    columns: str,
    tokens: Sequence[str] = (),
    both: bool = False,
    top: float | None = None,
    weights: bool = False,
    most_labels: int = MAX_TICKS,
    sizes: TextSizes = NORMAL,
) -> go.Figure:
    """The matrix `[n, m]`, a row per token; colours run from -`top` to `top`.

    `top` is the largest magnitude unless given. `rows` and `columns` name the axes; at most
    `most_labels` tokens are written on one. With `both`, columns are tokens too. `weights` are
    coloured from 0 to 1 by their square root. Values that are not finite are blank.
    """
    style, (n, m) = Style(theme, sizes), values.shape
    block = max(1, -(-max(n, m) // MAX_CELLS))
    finite = np.where(np.isfinite(values), values, np.nan).astype(np.float32)
    pooled = pool_by_magnitude(finite, block)
    if weights:
        cells = heatmap(np.sqrt(pooled), 0, 1, colorscale(theme), block=block)
        bar = style.colour_bar(*root_ticks(), thickness=10)
    else:
        top = top or float(np.nanmax(np.abs(pooled), initial=0.0)) or 1.0
        cells = heatmap(pooled, -top, top, diverging_scale(theme), block=block)
        labels = [with_minus(f"{value:.3g}") for value in (-top, 0, top)]
        bar = style.colour_bar([-top, 0, top], labels, thickness=10)
    text = hover(f"{escape(rows)} %{{y}}, {escape(columns)} %{{x}}: %{{customdata:.4g}}")
    x = token_axis(style, side="top", range=[-0.5, m - 0.5])
    y = token_axis(style, range=[n - 0.5, -0.5])
    if tokens:
        y |= token_ticks(tokens, end=n, most=most_labels)
    else:
        y |= style.title(rows)
    if both:
        x |= token_ticks(tokens, end=m, most=most_labels)
        x |= {"tickangle": -90, "constraintoward": "left"}
        y |= {"scaleanchor": "x", "constraintoward": "top"}
    else:
        x |= style.title(columns)
    width = text_width([shorten(token, MAX_LETTERS) for token in tokens], sizes.text) + 14
    return style.figure(
        cells | text | {"customdata": pooled, "colorbar": bar},
        margin={"l": width, "r": 6, "t": width if both else 40, "b": 6},
        dragmode="zoom",
        xaxis=x,
        yaxis=y,
    )
