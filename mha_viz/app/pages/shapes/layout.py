"""The Memory layout part of the Shapes page: addresses, strides, and what torch copies."""

import numpy as np
import streamlit as st

from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.chart import proportioned
from mha_viz.app.widgets.choices import number_input, segmented_control
from mha_viz.app.widgets.recipes import recipe
from mha_viz.app.widgets.tables import facts
from mha_viz.export import Drawn, Given, Table, rows_data
from mha_viz.figures.storage import storage_figure
from mha_viz.figures.theme import TextSizes, Theme
from mha_viz.lessons.layout import (
    MAX_SIZES,
    Layout,
    Operation,
    layouts,
    merges,
    operations,
    strides_of_q,
)

EXPLANATIONS = {
    "As projected": "q is a window on the fused product: a row of C numbers for each token. k and "
    "v of the token follow it, so the next token is 3C numbers away.",
    "View": "The same tape. Only shape and strides change: column c = h · d_h + i is now found by "
    "two indices, h and i.",
    "Transpose": "Heads come first. Two strides have swapped and no number has moved: the tape is "
    "unchanged, and only the order in which it is read differs.",
    "z": "z is a new tensor with a tape of its own, which w @ v wrote head by head.",
    "Transpose back": "Tokens come first again. Only strides changed, so on the tape the heads of "
    "a token are still apart.",
    "Merge": "This is the copy. The pieces of a token must lie side by side, and no strides give "
    "that order on the tape of z. So `reshape` writes a new tape. `view` never copies, so torch "
    "refuses it.",
}
IN_ORDER = {  # where the numbers of a step are in order already
    "Transpose back": "Tokens come first again. With one position or one head, the numbers of a "
    "token lie side by side already.",
    "Merge": "Back to one row per token. With one position, one head or one number per head, "
    "strides can express the merge, so `reshape` makes no copy and `view` would work too.",
}
TITLES = list(EXPLANATIONS)
OF_Z = TITLES[3:]
DEFAULT_SIZES = {"T": 4, "H": 3, "d_h": 4}
CELL_KEYS = {"head": "cell_head", "position": "cell_position", "column": "cell_number"}


def show(view: View) -> None:
    """Where each number lies at each step, and which step copies."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        T, H, d_h = (
            number_input(name, 1, most, DEFAULT_SIZES[name], f"cells_{name}")
            for name, most in MAX_SIZES.items()
        )
        title = segmented_control("Layout", TITLES, "Transpose", "layout", show_label=False)
    layout = layouts(T, H, d_h)[TITLES.index(title)]
    left, right = st.columns([3, 2], gap="medium")
    with right:  # first, because its inputs decide which cell is outlined on the left
        explained.paragraph(explanation(layout))
        st.code(layout.code, language="python")
        facts(_facts(layout))
        cell = _cell_inputs(T, H, d_h)
        explained.paragraph(_address_sentence(layout, cell))
    with left:
        _storage(view, layout, cell, TITLES.index(title))
    _operations(layout)
    if title in OF_Z:
        _merges(T, H, d_h)
    _in_this_layer(view)


def explanation(layout: Layout) -> str:
    """What this step does, for these sizes."""
    in_order = layout.contiguous if layout.title == "Transpose back" else not layout.copied
    texts = IN_ORDER if in_order and layout.title in IN_ORDER else EXPLANATIONS
    return texts[layout.title]


def _facts(layout: Layout) -> dict[str, str]:
    return {
        "shape": f"[{', '.join(layout.axes)}] = {list(layout.shape)}",
        "strides": str(list(layout.strides)),
        "order": "contiguous" if layout.contiguous else "not contiguous",
        "storage": _storage_of(layout),
    }


def _storage_of(layout: Layout) -> str:
    """Whose tape the tensor of a step reads."""
    if layout.copied:
        return "new (a copy)"
    if layout.title == "z":
        return "new (a product)"
    return "shared with q, k and v (a view)" if layout.name == "q" else "shared with z (a view)"


def _cell_inputs(T: int, H: int, d_h: int) -> tuple[int, int, int]:
    with st.container(horizontal=True):
        head, position, column = (
            number_input(name, 0, n - 1, 0, key)
            for (name, key), n in zip(CELL_KEYS.items(), (H, T, d_h), strict=True)
        )
    return head, position, column


def _select_clicked_cell() -> None:
    points = st.session_state["storage"]["selection"]["points"]
    if points and points[0].get("customdata"):
        for key, index in zip(CELL_KEYS.values(), points[0]["customdata"], strict=False):
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
    address = layout.cells[cell]
    return (
        f"Number {layout.tape[address]}: element [{index}] is at address {' + '.join(products)} = "
        f"{address}: the sum of each index times its stride."
    )


def _storage(view: View, layout: Layout, cell: tuple[int, int, int], at: int) -> None:
    tape = "the tape that is copied, and the new one" if layout.copied else "the tape of memory"
    caption(
        layout.title,
        f"Above, the tensor by index; below, {tape}, with the address of each row’s first number. "
        "A number is named after its place in [T, C] and keeps that name. Its colour is its head. "
        "Click a number to follow it.",
        _arrows(layout, cell),
    )
    H, T, d_h = layout.cells.shape
    given = Given(layout, "layouts(T, H, d_h)[at]")
    drawn = recipe(view, _draw_storage, T=T, H=H, d_h=d_h, at=at, layout=given, cell=cell)
    figure = drawn.make()[0]
    (x0, x1), (y1, y0) = figure.layout.xaxis.range, figure.layout.yaxis.range
    proportioned(
        drawn,
        (x1 - x0) / (y1 - y0),
        figure=figure,
        key="storage",
        name=f"Memory layout, {layout.title}",
        on_select=_select_clicked_cell,
        selection_mode="points",
        alt=_address_sentence(layout, cell),
    )


def _arrows(layout: Layout, cell: tuple[int, int, int]) -> str:
    """Where the arrows on the tape lead; not past the last token or the last head."""
    H, T, _ = layout.cells.shape
    following = ["token"] * (cell[1] + 1 < T) + ["head"] * (cell[0] + 1 < H and "H" in layout.axes)
    if not following:
        return ""
    return f" Orange: the step to the next {' and to the next '.join(following)}."


def _draw_storage(
    layout: Layout, cell: tuple[int, int, int], theme: Theme, sizes: TextSizes
) -> Drawn:
    figure = storage_figure(
        layout.cells,
        layout.tape,
        layout.axes,
        theme,
        selected=cell,
        before=layout.before,
        sizes=sizes,
    )
    data = rows_data(*_address_table(layout))
    return figure, data


def _address_table(layout: Layout) -> Table:
    """Every element with its address and the name of its number."""
    rows = [
        [*index, int(address), int(layout.tape[address])]
        for index, address in np.ndenumerate(layout.cells)
    ]
    return [*CELL_KEYS, "address", "number in [T, C]"], rows


def _operations(layout: Layout) -> None:
    """What each operation would make of the tensor of this step, as torch does it."""
    H, T, d_h = layout.cells.shape
    caption(
        "View, transpose, reshape, contiguous",
        f"What each does to this {layout.name} in torch. view and transpose never copy; reshape "
        "and contiguous copy only where they must.",
    )
    facts({each.code: made(each) for each in operations(T, H, d_h, layout.title)})


def made(operation: Operation) -> str:
    """The result of an operation in words."""
    if operation.error:
        return f"refused. RuntimeError: {operation.error}"
    memory = "shares the tape" if operation.shared else "a copy, on a new tape"
    return f"{list(operation.shape)}, strides {list(operation.strides)}: {memory}"


def _merges(T: int, H: int, d_h: int) -> None:
    """Three ways to write the merge, and torch's own error for the first."""
    caption("Why merge needs reshape", f"From z [{H}, {T}, {d_h}] to [T, C] = [{T}, {H * d_h}].")
    first, *others = merges(T, H, d_h)
    if first.error:
        st.code(f"z{first.code}", language="python")
        explained.html(f'<p class="broken">RuntimeError: {first.error}</p>')
    else:
        others = [first, *others]
        explained.paragraph(
            "With one position, one head or one number per head, strides can express the merge, so "
            "view succeeds."
        )
    facts({f"z{each.code}": made(each) for each in others})


def _in_this_layer(view: View) -> None:
    """The strides of q in the selected layer."""
    attention, T = view.model.network.blocks[view.layer].attn, view.trace.n_tokens
    H, G, d_h = attention.n_heads, attention.n_kv_heads, attention.d_head
    if not H:
        return
    strides = strides_of_q(T, H, G, d_h)
    _, token, head, one = strides["view"]
    between = "3C" if G == H else "(H + 2G) d_h"
    caption(
        f"In layer {view.layer}",
        f"q of this text is [1, {T}, {H * d_h}]. Element (t, h, i) lies at {token:,} t + {head} h "
        f"+ {'i' if one == 1 else f'{one} i'}: the step from token to token is {between} = "
        f"{token:,}, because k and v lie between them.",
    )
    facts({name: f"strides {list(each)}" for name, each in strides.items()})
