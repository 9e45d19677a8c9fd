"""Two numbers for each head, plotted against each other."""

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from mha_viz.figures.base import Style, hover
from mha_viz.figures.theme import NORMAL, TextSizes, Theme


def rank_scatter(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    theme: Theme,
    *,
    selected: tuple[int, int],
    names: tuple[str, str],
    sizes: TextSizes = NORMAL,
) -> go.Figure:
    """A dot for each head of `x` and `y` `[L, H]` with a ring around the selected one.

    Heads with a NaN have no dot. The customdata of a dot is [layer, head].
    """
    style = Style(theme, sizes)
    heads = np.argwhere(np.isfinite(x) & np.isfinite(y))
    at = tuple(heads.T)
    ringed = (heads == np.array(selected)).all(axis=1)
    colours = np.where(ringed, theme.query, theme.page).tolist()
    ring = {"color": colours, "width": np.where(ringed, 3, 1).tolist()}
    marker = {"size": 9, "color": theme.accent, "opacity": 0.75, "line": ring}
    dots = {"type": "scatter", "mode": "markers", "x": x[at], "y": y[at], "marker": marker}
    text = hover("L%{customdata[0]} H%{customdata[1]}: %{x:.4f}, %{y:.4f}")
    return style.figure(
        dots | text | {"customdata": heads.tolist()},
        margin={"l": 64, "r": 8, "t": 8, "b": 48},
        xaxis=style.axis(names[0], grid=True, nticks=6),
        yaxis=style.axis(names[1], grid=True, nticks=6),
    )
