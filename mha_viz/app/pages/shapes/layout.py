"""The Memory layout part of the Shapes page: addresses, strides, and what torch rejects."""

import numpy as np
import streamlit as st

from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.chart import proportioned
from mha_viz.app.widgets.choices import number_input, segmented_control
from mha_viz.app.widgets.tables import facts
from mha_viz.export import Table
from mha_viz.figures.storage import storage_figure
from mha_viz.lessons.layout import MAX_SIZES, Layout, layouts, view_error

EXPLANATIONS = {
    "As projected": "One row of C values per position, stored row after row.",
    "View": "The same addresses, indexed as heads. A view changes only the index.",
    "Transpose": "Heads come first. Two strides changed places and no value moved, so the values "
    "of one head are no longer next to each other in memory.",
    "Contiguous": "A copy in index order: the values of each head are now next to each other. The "
    "cells show addresses in the new storage.",
    "Merge": "Back to one row per position. After the transpose, the values of a position are far "
    "apart, so `reshape` copies where it has to. `view` never copies, so it fails there.",
}
TITLES = list(EXPLANATIONS)
DEFAULT_SIZES = {"T": 4, "H": 3, "d_h": 4}
CELL_KEYS = {"head": "cell_head", "position": "cell_position", "column": "cell_number"}


def show(view: View) -> None:
    """How one tensor is stored, and why `view` fails where `reshape` makes a copy."""
    with st.container(horizontal=True):
        T, H, d_h = (
            number_input(name, 1, most, DEFAULT_SIZES[name], f"cells_{name}")
            for name, most in MAX_SIZES.items()
        )
    title = segmented_control("Layout", TITLES, "Transpose", "layout", show_label=False)
    layout = layouts(T, H, d_h)[TITLES.index(title)]
    left, right = st.columns([3, 2], gap="medium")
    with right:  # first, because its inputs decide which cell is outlined on the left
        explained.paragraph(EXPLANATIONS[title])
        st.code(layout.code, language="python")
        facts(_facts(layout))
        cell = _cell_inputs(T, H, d_h)
        explained.paragraph(_address_sentence(layout, cell))
    with left:
        _storage(view, layout, cell)
    _merge_with_view(T, H, d_h)


def _facts(layout: Layout) -> dict[str, str]:
    return {
        "shape": f"[{', '.join(layout.axes)}] = {list(layout.shape)}",
        "strides": str(list(layout.strides)),
        "order": "contiguous" if layout.contiguous else "not contiguous",
        "storage": "new (a copy)" if layout.copied else "shared (a view)",
    }


def _cell_inputs(T: int, H: int, d_h: int) -> tuple[int, int, int]:
    with st.container(horizontal=True):
        head, position, column = (
            number_input(name, 0, n - 1, 0, key)
            for (name, key), n in zip(CELL_KEYS.items(), (H, T, d_h), strict=True)
        )
    return head, position, column


def _select_clicked_cell() -> None:
    points = st.session_state["storage"]["selection"]["points"]
    if points:
        for key, index in zip(CELL_KEYS.values(), points[0]["customdata"], strict=True):
            st.session_state[key] = int(index)


def _address_sentence(layout: Layout, cell: tuple[int, int, int]) -> str:
    head, position, column = cell
    d_h = layout.cells.shape[2]
    indices = {"H": head, "T": position, "d_h": column, "C": head * d_h + column}
    products = (
        f"{indices[axis]} · {stride}"
        for axis, stride in zip(layout.axes, layout.strides, strict=True)
    )
    index = ", ".join(str(indices[axis]) for axis in layout.axes)
    return (
        f"Element [{index}] is at address {' + '.join(products)} = {layout.cells[cell]}: the sum "
        "of each index times its stride."
    )


def _storage(view: View, layout: Layout, cell: tuple[int, int, int]) -> None:
    caption(
        layout.title,
        "The tensor by index, and its storage below. Each cell shows its address; colour: head. "
        "Click a cell to select it.",
    )
    figure = storage_figure(
        layout.cells, layout.storage, layout.axes, view.theme, selected=cell, sizes=view.sizes
    )
    (x0, x1), (y1, y0) = figure.layout.xaxis.range, figure.layout.yaxis.range
    proportioned(
        figure,
        f"{x1 - x0:.2f} / {y1 - y0:.2f}",
        key="storage",
        on_select=_select_clicked_cell,
        selection_mode="points",
        alt=_address_sentence(layout, cell),
        table=lambda: _address_table(layout),
    )


def _address_table(layout: Layout) -> Table:
    """Every element with its address, and with its address in the original storage."""
    rows = [
        [*index, int(address), int(layout.storage[address])]
        for index, address in np.ndenumerate(layout.cells)
    ]
    return [*CELL_KEYS, "address", "address in [T, C]"], rows


def _merge_with_view(T: int, H: int, d_h: int) -> None:
    """The error that torch raises for a merge with `view`."""
    caption("Why merge needs reshape", "The same call with view, and the result in torch.")
    st.code(f"z.transpose(0, 1).view({T}, {H * d_h})", language="python")
    if error := view_error(T, H, d_h):
        explained.html(f'<p class="broken">RuntimeError: {error}</p>')
    else:
        explained.paragraph(
            "With one position or one head, no value has to move, so view succeeds."
        )
