"""The Memory part of the Shapes page: cells, addresses, strides, and what torch refuses."""

import streamlit as st

from mha_viz import memory
from mha_viz.figures.storage import storage_figure
from mha_viz.memory import Layout
from mha_viz.session.attention import caption
from mha_viz.session.chart import chart
from mha_viz.session.choices import one_of
from mha_viz.session.view import View

TITLES = ["As projected", "View", "Transpose", "Contiguous", "Merge"]
WORDS = {
    "As projected": "One row of C numbers for each position; the rows lie one after the other.",
    "View": "The same addresses, counted as heads: a view is another way to count.",
    "Transpose": "Heads first. The strides changed places and no number moved, so going through a "
    "head now jumps over the others in memory.",
    "Contiguous": "A copy in the order in which it is counted: each head now lies in one piece. "
    "The cells say where the numbers are in the new storage.",
    "Merge": "Back to one row a position. The transpose left the numbers of a position apart, so "
    "`reshape` copies them together; `view` only recounts, and refuses.",
}


def sizes() -> tuple[int, int, int]:
    """T, H and d_h of a tensor that is small enough to be drawn cell by cell."""
    columns = st.columns(3)
    limits = {"T": 4, "H": 3, "d_h": 4}
    chosen = [
        int(
            column.slider(
                name, 1, memory.MOST, first, key=f"cells_{name}", bind="query-params"
            )
        )
        for column, (name, first) in zip(columns, limits.items(), strict=True)
    ]  # fmt: skip
    T, H, d_h = chosen
    return T, H, d_h


def lesson(view: View, T: int, H: int, d_h: int) -> None:
    """One layout of the tensor, its storage below, and the address of the chosen cell."""
    title = one_of("Layout", TITLES, "Transpose", "layout", named=False)
    layout = memory.layouts(T, H, d_h)[TITLES.index(title)]
    cell = _cell(T, H, d_h)
    left, right = st.columns([3, 2], gap="medium")
    with left:
        caption(title, "each head in its colour; a cell says its address. Click a cell.")
        figure = storage_figure(
            layout.cells, layout.storage, layout.axes, view.theme, chosen=cell, sizes=view.sizes
        )
        chart(
            figure, key="storage", height=470, on_select=_clicked,
            selection_mode="points", alt=_sentence(layout, cell),
        )  # fmt: skip
    with right:
        st.markdown(WORDS[title])
        st.code(layout.code, language="python")
        st.html(_facts(layout))
        _choose_cell(T, H, d_h)
        st.markdown(_sentence(layout, cell))


def refusal(T: int, H: int, d_h: int) -> None:
    """What torch says to `view` where only `reshape` will do."""
    caption("Why merge is a reshape", "the same call with view, and what torch answers.")
    st.code(f"z.transpose(0, 1).view({T}, {H * d_h})", language="python")
    if said := memory.view_error(T, H, d_h):
        st.html(f'<p class="broken">RuntimeError: {said}</p>')
    else:
        st.markdown("With a single position or a single head no number has to move: it is allowed.")


def _cell(T: int, H: int, d_h: int) -> tuple[int, int, int]:
    state = st.session_state
    h, t, i = (int(state.get(f"cell_{name}", 0)) for name in ("head", "position", "number"))
    return min(h, H - 1), min(t, T - 1), min(i, d_h - 1)


def _choose_cell(T: int, H: int, d_h: int) -> None:
    limits = {"head": H, "position": T, "number": d_h}
    for column, (name, limit) in zip(st.columns(3), limits.items(), strict=True):
        key = f"cell_{name}"
        if st.session_state.get(key, 0) >= limit:
            st.session_state[key] = limit - 1
        column.number_input(name, 0, limit - 1, 0, key=key, bind="query-params")


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
