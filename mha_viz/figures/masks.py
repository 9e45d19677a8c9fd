"""A mask, or a pattern under it: rows are queries, columns are keys, masked pairs are blank."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from mha_viz.figures.base import Spec, Style, hover
from mha_viz.figures.labels import pattern_axes, pattern_margin
from mha_viz.figures.marks import gaps, heatmap
from mha_viz.figures.theme import NORMAL, TextSizes, Theme, colorscale
from mha_viz.trace import Array


def mask_figure(
    mask: NDArray[np.bool_],
    queries: Sequence[str],
    keys: Sequence[str],
    theme: Theme,
    *,
    sizes: TextSizes = NORMAL,
) -> go.Figure:
    """The mask `[T_q, T_k]`: a cell where the query may look, nothing where it may not."""
    z = np.where(mask, np.float32(1), np.float32(np.nan))
    cells = heatmap(z, 0, 1, [(0, theme.key), (1, theme.key)]) | gaps(mask)
    cells |= hover("from %{y} to %{x}: may look")
    return _figure(cells, queries, keys, Style(theme, sizes))


def masked_pattern(
    pattern: Array,
    mask: NDArray[np.bool_],
    queries: Sequence[str],
    keys: Sequence[str],
    theme: Theme,
    *,
    sizes: TextSizes = NORMAL,
) -> go.Figure:
    """The pattern `[T_q, T_k]` where the mask allows it, coloured by the square root of weight."""
    weights = np.where(mask, pattern, np.float32(np.nan))
    cells = heatmap(np.sqrt(weights), 0, 1, colorscale(theme), customdata=weights) | gaps(mask)
    cells |= hover("from %{y} to %{x}: %{customdata:.3f}")
    return _figure(cells, queries, keys, Style(theme, sizes))


def _figure(cells: Spec, queries: Sequence[str], keys: Sequence[str], style: Style) -> go.Figure:
    # The border shows how large the mask is where its edge is blank.
    line: Spec = {"showline": True, "linewidth": 1, "linecolor": style.theme.control}
    return style.figure(
        cells | {"showscale": False},
        margin=pattern_margin(queries, keys, style),
        **pattern_axes(queries, keys, style, fixedrange=True, mirror=True, **line),
    )
