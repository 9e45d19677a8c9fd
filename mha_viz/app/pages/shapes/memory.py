"""The Memory part of the Shapes page: cells, addresses, strides, and what torch refuses."""

import numpy as np
import streamlit as st

from mha_viz.app.view import View
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.chart import chart
from mha_viz.app.widgets.choices import number_input, segmented_control
from mha_viz.export import Table
from mha_viz.figures.storage import storage_figure
from mha_viz.lessons import layout as memory
from mha_viz.lessons.layout import Layout

TITLES = ["As projected", "View", "Transpose", "Contiguous", "Merge"]
WORDS = {
    "As projected": "One row of C numbers for each position; the rows lie one after the other.",
    "View": "The same addresses, counted as heads: a view is another way to count.",
    "Transpose": "Heads first. The strides changed places and no number moved, so going through a "
    "head now jumps over the others in memory.",
    "Contiguous": "A copy in the order in which it is counted: each head now lies in one piece. "
    "The cells say where the numbers are in the new storage.",
    "Merge": "Back to one row a position. The transpose left the numbers of a position apart, so "
    "`reshape` copies them together where it must; `view` only recounts, and then refuses.",
}


def show(view: View) -> None:
    """Where the numbers of one layer lie, and why `view` refuses what `reshape` copies."""
    T, H, d_h = sizes()
    lesson(view, T, H, d_h)
    refusal(T, H, d_h)


def sizes() -> tuple[int, int, int]:
    """T, H and d_h of a tensor that is small enough to be drawn cell by cell."""
    first = {"T": 4, "H": 3, "d_h": 4}
    with st.container(horizontal=True):
        T, H, d_h = (
            number_input(name, 1, most, first[name], f"cells_{name}")
            for name, most in memory.MOST.items()
        )
    return T, H, d_h


def lesson(view: View, T: int, H: int, d_h: int) -> None:
    """One layout of the tensor, its storage below, and the address of the chosen cell."""
    title = segmented_control("Layout", TITLES, "Transpose", "layout", show_label=False)
    layout = memory.layouts(T, H, d_h)[TITLES.index(title)]
    left, right = st.columns([3, 2], gap="medium")
    with right:  # first, since its inputs say which cell is marked at the left
        st.markdown(WORDS[title])
        st.code(layout.code, language="python")
        st.html(_facts(layout))
        cell = _choose_cell(T, H, d_h)
        st.markdown(_sentence(layout, cell))
    with left:
        caption(title, "each head in its colour; a cell says its address. Click a cell.")
        figure = storage_figure(
            layout.cells, layout.storage, layout.axes, view.theme, chosen=cell, sizes=view.sizes
        )
        (x0, x1), (y1, y0) = figure.layout.xaxis.range, figure.layout.yaxis.range
        st.html(f"<style>:root {{ --storage: {x1 - x0:.2f} / {y1 - y0:.2f}; }}</style>")
        with st.container(key="storage_box", height="stretch"):
            chart(
                figure, key="storage", height="stretch", on_select=_clicked,
                selection_mode="points", alt=_sentence(layout, cell),
                table=lambda: _addresses(layout),
            )  # fmt: skip


def _addresses(layout: Layout) -> Table:
    """Every number with its address, and with the one it has in the first storage."""
    rows = [
        [head, position, number, int(address), int(layout.storage[address])]
        for (head, position, number), address in np.ndenumerate(layout.cells)
    ]
    return ["head", "position", "number", "address", "address in [T, C]"], rows


def refusal(T: int, H: int, d_h: int) -> None:
    """What torch says to `view` where only `reshape` will do."""
    caption("Why merge is a reshape", "the same call with view, and what torch answers.")
    st.code(f"z.transpose(0, 1).view({T}, {H * d_h})", language="python")
    if said := memory.view_error(T, H, d_h):
        st.html(f'<p class="broken">RuntimeError: {said}</p>')
    else:
        st.markdown("With a single position or a single head no number has to move: it is allowed.")


def _choose_cell(T: int, H: int, d_h: int) -> tuple[int, int, int]:
    with st.container(horizontal=True):
        head = number_input("head", 0, H - 1, 0, "cell_head")
        position = number_input("position", 0, T - 1, 0, "cell_position")
        number = number_input("number", 0, d_h - 1, 0, "cell_number")
    return head, position, number


def _clicked() -> None:
    points = st.session_state["storage"]["selection"]["points"]
    if points:
        for name, index in zip(
            ("head", "position", "number"), points[0]["customdata"], strict=True
        ):
            st.session_state[f"cell_{name}"] = int(index)


def _sentence(layout: Layout, cell: tuple[int, int, int]) -> str:
    h, t, i = cell
    address = int(layout.cells[cell])
    index = {"H": h, "T": t, "d_h": i, "C": h * layout.cells.shape[2] + i}
    terms = " + ".join(
        f"{index[a]} · {s}" for a, s in zip(layout.axes, layout.strides, strict=True)
    )
    where = ", ".join(str(index[a]) for a in layout.axes)
    return f"Entry [{where}] lies at {terms} = {address}: each index times its stride."


def _facts(layout: Layout) -> str:
    letters = ", ".join(layout.axes)
    rows = {
        "shape": f"[{letters}] = {list(layout.shape)}",
        "strides": str(list(layout.strides)),
        "order": "contiguous" if layout.contiguous else "not contiguous",
        "copy": "yes: new storage" if layout.copied else "no: the same storage",
    }
    cells = "".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in rows.items())
    return f'<dl class="facts">{cells}</dl>'
