"""The memory layout of a tensor: its elements by index, and the same elements by address."""

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from mha_viz.figures.base import HIDDEN, Spec, Style, hover
from mha_viz.figures.marks import clickable, fill, frame, inside, squares
from mha_viz.figures.shapes import head_colours
from mha_viz.figures.theme import NORMAL, TextSizes, Theme

CELL = 0.92  # width and height, in units
BAND = 1.7  # rows between the tensor and its storage
OPACITY = 0.35

Numbers = NDArray[np.float64] | NDArray[np.int64]


def storage_figure(
    addresses: NDArray[np.int64],
    storage: NDArray[np.int64],
    axes: tuple[str, ...],
    theme: Theme,
    *,
    selected: tuple[int, int, int],
    sizes: TextSizes = NORMAL,
) -> go.Figure:
    """A cell for each of `addresses` `[H, T, d_h]`, by index and, below, by address in `storage`.

    `selected` (head, position, element) is outlined in both. The customdata of a cell is
    [head, position, element]. Where `axes` start with H, the heads are apart; otherwise they share
    the rows of their position.
    """
    style, (H, T, d_h) = Style(theme, sizes), addresses.shape
    indices = np.stack([axis.ravel() for axis in np.indices(addresses.shape)], axis=1)
    head, position, element = indices.T
    step = d_h + (1.0 if axes[0] == "H" else 0.35 if len(axes) > 2 else 0.0)
    x, y = head * step + element, position.astype(float)
    flat, order = addresses.ravel(), np.argsort(addresses.ravel())
    per_row = H * d_h  # of storage: a position, as it was projected
    stored_x, stored_y = flat[order] % per_row, T + BAND + flat[order] // per_row
    at = int(np.ravel_multi_index(selected, addresses.shape))
    place = int(np.flatnonzero(order == at)[0])
    bottom = T + BAND + -(-len(storage) // per_row)
    return style.figure(
        _cells(x, y, flat, indices, style),
        _cells(stored_x, stored_y, flat[order], indices[order], style),
        margin={"l": 4, "r": 4, "t": 4, "b": 4},
        clickmode="event+select",
        annotations=[
            _title("by index", -0.75, style),
            _title("in memory, by address", T + 0.9, style),
        ],
        shapes=[
            frame(x[at], y[at], theme.query, 0.48),
            frame(stored_x[place], stored_y[place], theme.query, 0.48),
        ],
        xaxis=_axis(-0.6, max(per_row, H * step) - 0.3, "left"),
        yaxis=_axis(bottom - 0.3, -1.3, "top") | {"scaleanchor": "x"},
    )


def _axis(first: float, last: float, toward: str) -> Spec:
    return HIDDEN | {"range": [first, last], "constrain": "domain", "constraintoward": toward}


def _cells(
    x: Numbers, y: Numbers, addresses: NDArray[np.int64], indices: NDArray[np.intp], style: Style
) -> Spec:
    """A cell with its address for each element, in the colour of its head."""
    heads = indices[:, 0]
    colours = np.array(head_colours(style.theme, int(heads.max()) + 1))[heads].tolist()
    font = style.mono() | {"size": style.sizes.cell}
    text = "head %{customdata[0]}, position %{customdata[1]}, element %{customdata[2]}"
    return (
        squares(x, y, CELL, customdata=indices.tolist())
        | fill(colours, OPACITY)
        | clickable(OPACITY)
        | inside([str(address) for address in addresses], font)
        | hover(text)
    )


def _title(text: str, y: float, style: Style) -> Spec:
    return style.note(text, -0.5, y, anchor="left middle", font=style.muted(1))
