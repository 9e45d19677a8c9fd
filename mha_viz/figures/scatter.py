"""Two numbers of every head against each other."""

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from mha_viz.figures.theme import NORMAL, SANS, Theme, Type


def rank_scatter(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    theme: Theme,
    *,
    chosen: tuple[int, int],
    names: tuple[str, str],
    sizes: Type = NORMAL,
) -> go.Figure:
    """A dot for each head of `x` and `y` `[L, H]`, the chosen one ringed; NaN is left out.

    The customdata of a dot is [layer, head].
    """
    heads = np.argwhere(np.isfinite(x) & np.isfinite(y))
    at = tuple(heads.T)
    is_chosen = (heads == np.array(chosen)).all(axis=1)
    dots = {
        "type": "scatter", "mode": "markers", "x": x[at], "y": y[at],
        "customdata": heads.tolist(),
        "marker": {
            "size": 9, "color": theme.accent, "opacity": 0.75,
            "line": {
                "color": np.where(is_chosen, theme.query, theme.page).tolist(),
                "width": np.where(is_chosen, 3, 1).tolist(),
            },
        },
        "hovertemplate": "L%{customdata[0]} H%{customdata[1]}: %{x:.4f}, %{y:.4f}<extra></extra>",
    }  # fmt: skip
    axis = {
        "fixedrange": True, "zeroline": False, "gridcolor": theme.hairline, "ticks": "",
        "nticks": 6, "tickfont": {"size": sizes.tick, "color": theme.muted},
        "title": {"font": {"size": sizes.note, "color": theme.muted}},
    }  # fmt: skip
    layout = {
        "template": "none", "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": 64, "r": 8, "t": 8, "b": 48}, "dragmode": False, "showlegend": False,
        "font": {"family": SANS, "color": theme.ink}, "hovermode": "closest",
        "hoverlabel": {"bgcolor": theme.surface, "bordercolor": theme.query,
                       "font": {"family": SANS, "size": sizes.tick + 1, "color": theme.ink}},
        "xaxis": axis | {"title": {**axis["title"], "text": names[0]}},  # type: ignore[dict-item]
        "yaxis": axis | {"title": {**axis["title"], "text": names[1]}},  # type: ignore[dict-item]
    }  # fmt: skip
    return go.Figure(data=[dots], layout=layout)
