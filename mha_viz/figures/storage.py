"""Memory made visible: a tensor as it is counted, and the same numbers as they lie in storage."""

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from mha_viz.figures.shapes import head_colours
from mha_viz.figures.theme import MONO, NORMAL, SANS, Theme, Type


def storage_figure(
    cells: NDArray[np.int64],
    storage: NDArray[np.int64],
    axes: tuple[str, ...],
    theme: Theme,
    *,
    chosen: tuple[int, int, int],
    sizes: Type = NORMAL,
) -> go.Figure:
    """`cells` `[H, T, d_h]` as counted, over the band of storage; a cell says its address.

    `chosen` (head, position, number) is outlined in both. Each cell of either part carries
    [head, position, number] as customdata, so that a click can choose it. Where `axes` begin with
    H, heads stand apart; otherwise they share the rows of their position.
    """
    H, T, d_h = cells.shape
    apart = axes[0] == "H"
    h, t, i = (a.ravel() for a in np.indices(cells.shape))
    step = d_h + (1.0 if apart else 0.35 if len(axes) > 2 else 0.0)
    top_x, top_y = h * step + i, t.astype(float)
    order = np.argsort(cells.ravel())
    per_row = H * d_h  # a row of storage for each position, as it was projected
    address = cells.ravel()[order]
    band_x, band_y = address % per_row, T + 1.7 + address // per_row * 1.0
    colours = np.array(head_colours(theme, H))
    pointed = _index(chosen, cells.shape)
    data = [
        _squares(top_x, top_y, cells.ravel(), colours[h], np.stack([h, t, i], 1), theme, sizes),
        _squares(
            band_x, band_y, address, colours[h[order]], np.stack([h, t, i], 1)[order], theme, sizes
        ),
    ]
    at = np.flatnonzero(order == pointed)[0]
    marks = [(top_x[pointed], top_y[pointed]), (band_x[at], band_y[at])]
    lines = -(-len(storage) // per_row)
    bottom = T + 1.7 + lines
    names = [
        _name("counted", 0, -0.75, theme, sizes),
        _name("in storage, address by address", 0, T + 0.9, theme, sizes),
    ]
    axis = {"visible": False, "fixedrange": True, "constrain": "domain"}
    layout = {
        "template": "none", "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": 4, "r": 4, "t": 4, "b": 4}, "dragmode": False, "showlegend": False,
        "hovermode": "closest", "clickmode": "event+select", "barmode": "overlay", "bargap": 0,
        "annotations": names,
        "shapes": [_mark(x, y, theme) for x, y in marks],
        "hoverlabel": {"bgcolor": theme.surface, "bordercolor": theme.query,
                       "font": {"family": MONO, "size": sizes.tick + 1, "color": theme.ink}},
        "xaxis": axis | {"range": [-0.6, max(per_row, H * step) - 0.3], "constraintoward": "left"},
        "yaxis": axis | {"range": [bottom - 0.3, -1.3], "scaleanchor": "x",
                         "constraintoward": "top"},
    }  # fmt: skip
    return go.Figure(data=data, layout=layout)


def _squares(
    x: NDArray[np.float64], y: NDArray[np.float64], addresses: NDArray[np.int64],
    colours: NDArray[np.str_], owners: NDArray[np.int64], theme: Theme, sizes: Type,
) -> dict[str, object]:  # fmt: skip
    """Bars of one unit, which grow and shrink with the picture as markers would not."""
    return {
        "type": "bar", "x": x, "y": np.full(len(x), 0.92), "base": y - 0.46, "width": 0.92,
        "marker": {"color": colours.tolist(), "opacity": 0.35, "line": {"width": 0}},
        "selected": {"marker": {"opacity": 0.35}}, "unselected": {"marker": {"opacity": 0.35}},
        "text": [str(a) for a in addresses], "textposition": "inside", "insidetextanchor": "middle",
        "textangle": 0, "constraintext": "none",
        "textfont": {"size": sizes.cell, "family": MONO, "color": theme.ink},
        "customdata": owners.tolist(),
        "hovertemplate": "head %{customdata[0]}, position %{customdata[1]}, "
                         "number %{customdata[2]}<extra></extra>",
    }  # fmt: skip


def _index(chosen: tuple[int, int, int], shape: tuple[int, ...]) -> int:
    return int(np.ravel_multi_index(chosen, shape))


def _mark(x: float, y: float, theme: Theme) -> dict[str, object]:
    return {
        "type": "rect", "x0": x - 0.48, "x1": x + 0.48, "y0": y - 0.48, "y1": y + 0.48,
        "line": {"color": theme.query, "width": 3},
    }  # fmt: skip


def _name(text: str, x: float, y: float, theme: Theme, sizes: Type) -> dict[str, object]:
    return {
        "text": text, "x": x - 0.5, "y": y, "xanchor": "left", "yanchor": "middle",
        "showarrow": False,
        "font": {"size": sizes.note + 1, "family": SANS, "color": theme.muted},
    }  # fmt: skip
