"""A mask, or a pattern under it: rows look from, columns look at, blank is hidden."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from mha_viz.figures.heatmap import GAPS_UP_TO
from mha_viz.figures.labels import room, token_ticks
from mha_viz.figures.theme import MONO, NORMAL, SANS, Theme, Type, colorscale
from mha_viz.trace import Array


def mask_figure(
    mask: NDArray[np.bool_],
    queries: Sequence[str],
    keys: Sequence[str],
    theme: Theme,
    *,
    sizes: Type = NORMAL,
) -> go.Figure:
    """The mask `[T_q, T_k]`: a cell where the query may look, nothing where it may not."""
    z = np.where(mask, np.float32(1), np.float32(np.nan))
    heatmap = {
        "z": z, "zmin": 0, "zmax": 1, "showscale": False,
        "colorscale": [(0, theme.key), (1, theme.key)],
        "hovertemplate": "from %{y} to %{x}: may look<extra></extra>",
    }  # fmt: skip
    return _figure(heatmap, queries, keys, theme, sizes)


def masked_pattern(
    pattern: Array,
    mask: NDArray[np.bool_],
    queries: Sequence[str],
    keys: Sequence[str],
    theme: Theme,
    *,
    sizes: Type = NORMAL,
) -> go.Figure:
    """The pattern `[T_q, T_k]` where the mask lets it be, by the square root of its weights."""
    weights = np.where(mask, pattern, np.float32(np.nan))
    heatmap = {
        "z": np.sqrt(weights), "customdata": weights, "zmin": 0, "zmax": 1, "showscale": False,
        "colorscale": colorscale(theme),
        "hovertemplate": "from %{y} to %{x}: %{customdata:.3f}<extra></extra>",
    }  # fmt: skip
    return _figure(heatmap, queries, keys, theme, sizes)


def _figure(
    heatmap: dict[str, object],
    queries: Sequence[str],
    keys: Sequence[str],
    theme: Theme,
    sizes: Type,
) -> go.Figure:
    T_q, T_k = len(queries), len(keys)
    gap = 1 if max(T_q, T_k) <= GAPS_UP_TO else 0
    axis = {
        "showgrid": False, "zeroline": False, "ticks": "", "constrain": "domain",
        # The frame says how large the mask is where its edge is blank.
        "showline": True, "mirror": True, "linecolor": theme.control, "linewidth": 1,
        "ticklabeloverflow": "allow", "fixedrange": True, "type": "linear",
        "tickfont": {"size": sizes.tick, "family": MONO, "color": theme.ink},
    }  # fmt: skip
    layout = {
        "template": "none", "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": room(queries, sizes), "r": 6, "t": room(keys, sizes), "b": 6},
        "dragmode": False, "font": {"family": SANS, "color": theme.ink},
        "hoverlabel": {"bgcolor": theme.surface, "bordercolor": theme.query,
                       "font": {"family": MONO, "size": sizes.tick + 1, "color": theme.ink}},
        "xaxis": axis | token_ticks(keys) | {"side": "top", "tickangle": -90,
                                         "range": [-0.5, T_k - 0.5], "constraintoward": "left"},
        "yaxis": axis | token_ticks(queries) | {"range": [T_q - 0.5, -0.5], "scaleanchor": "x",
                                            "constraintoward": "top"},
    }  # fmt: skip
    drawn = {"type": "heatmap", "xgap": gap, "ygap": gap, "hoverongaps": False, **heatmap}
    return go.Figure(data=[drawn], layout=layout)
