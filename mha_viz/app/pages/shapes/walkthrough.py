"""The Walkthrough part of the Shapes page: one attention layer step by step."""

from dataclasses import dataclass

import numpy as np
import streamlit as st
import torch

from mha_viz.app.messages import problem
from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.chart import chart, proportioned
from mha_viz.app.widgets.choices import number_input, segmented_control
from mha_viz.app.widgets.download_buttons import download_matrix
from mha_viz.app.widgets.selection import n_first_tokens, selected_index
from mha_viz.app.widgets.tables import facts
from mha_viz.attention import MultiHeadAttention, fitting_head_counts
from mha_viz.errors import ShapeError
from mha_viz.figures.shapes import tensor_drawing
from mha_viz.figures.values import matrix_heatmap
from mha_viz.lessons import walkthrough
from mha_viz.lessons.walkthrough import LESSONS, Step
from mha_viz.trace import Array

STEPS = [lesson.name for lesson in LESSONS]
MOST_TOKENS = 256  # the scores of the whole layer are kept, and they grow with the square of T
SOURCES = ["this text", "random"]
SIZES = {"B": (1, 4, 2), "T": (1, 32, 6), "C": (1, 96, 24), "H": (1, 32, 4)}  # low, high, default
HELP = {
    "B": "Batch size",
    "T": "Number of positions",
    "C": "Width of a position, d_model",
    "H": "Number of heads; C must be a multiple of it",
}


@dataclass(frozen=True, slots=True, eq=False)
class Walkthrough:
    """The steps of one layer, and the layer that they belong to."""

    steps: tuple[Step, ...]
    attention: MultiHeadAttention
    heads: tuple[int, ...]  # the layer's heads by their number in the model
    index: int  # of the selected head among them
    tokens: tuple[str, ...]  # empty for random input
    name: str  # "layer 2 on this text"


def show(view: View, source: str) -> None:
    """The selected step of the walkthrough, on the text or on random input."""
    walk = _of_text(view) if source == SOURCES[0] else _of_random_input()
    if walk is None:
        return
    at = select_step()
    _shapes_of_all_steps(walk, at)
    _drawing(view, walk, at)
    _explanation(walk, at)
    _values_on_demand(view, walk, at)


def _of_text(view: View) -> Walkthrough | None:
    index = selected_index(view)
    if index is None:
        return None
    T = n_first_tokens(view, MOST_TOKENS)
    attention, steps = _steps_on_text(view.trace_key, view.layer, T, _view=view)
    heads = tuple(view.model.config.kept_heads(view.layer))
    name = f"layer {view.layer} on this text"
    return Walkthrough(steps, attention, heads, index, view.trace.tokens[:T], name)


@st.cache_resource(max_entries=8, show_spinner=False)
def _steps_on_text(
    trace_key: str, layer: int, T: int, *, _view: View
) -> tuple[MultiHeadAttention, tuple[Step, ...]]:
    network = _view.model.network
    ids = torch.tensor([_view.trace.token_ids[:T]], device=_view.model.device)
    attention = network.blocks[layer].attn
    return attention, walkthrough.walk(attention, network.attention_input(ids, layer))


def _of_random_input() -> Walkthrough | None:
    with st.container(horizontal=True):
        B, T, C, H = (
            number_input(name, *limits, f"size_{name}", help=HELP[name])
            for name, limits in SIZES.items()
        )
    try:
        attention, steps = _steps_on_random_input(B, T, C, H)
    except ShapeError as error:
        problem(str(error))
        _offer_fitting_heads(C, H)
        return None
    name = f"a random layer with C = {C}, H = {H} (seed 0)"
    return Walkthrough(steps, attention, heads=tuple(range(H)), index=0, tokens=(), name=name)


def _offer_fitting_heads(C: int, H: int) -> None:
    for column, fitting in zip(st.columns(4), fitting_head_counts(C, H), strict=False):
        label = f"H = {fitting}, d_h = {C // fitting}"
        column.button(label, on_click=_set_heads, args=(fitting,), width="stretch")


def _set_heads(n_heads: int) -> None:
    st.session_state["size_H"] = n_heads


@st.cache_resource(max_entries=8, show_spinner=False)
def _steps_on_random_input(
    B: int, T: int, C: int, H: int
) -> tuple[MultiHeadAttention, tuple[Step, ...]]:
    attention, x = walkthrough.random_layer(C, H, B, T)
    return attention, walkthrough.walk(attention, x)


def select_step() -> int:
    """The index of the selected step; buttons and arrow keys select the previous or next one."""
    # The buttons come before the control, which takes its value from a link only when it is drawn.
    name = st.session_state.get("step") or st.query_params.get("step")
    at = STEPS.index(name) if name in STEPS else 0
    with st.container(horizontal=True, vertical_alignment="center"):
        _step_button("Back", at - 1, "Left")
        _step_button("Next", at + 1, "Right")
        name = segmented_control("Step", STEPS, STEPS[0], "step", show_label=False)
    return STEPS.index(name)


def _step_button(label: str, to: int, shortcut: str) -> None:
    st.button(
        label,
        on_click=_select,
        args=(to,),
        disabled=not 0 <= to < len(STEPS),
        shortcut=shortcut,
        key=f"step_{label.lower()}",
    )


def _select(step: int) -> None:
    st.session_state["step"] = STEPS[max(0, min(step, len(STEPS) - 1))]


def _shapes_of_all_steps(walk: Walkthrough, at: int) -> None:
    """The shapes of all steps in one line, the selected one in bold."""
    shapes = [
        f"<b>{step.shape}</b>" if number == at else f"<span>{step.shape}</span>"
        for number, step in enumerate(walk.steps)
    ]
    st.html(f'<div class="ladder">{" → ".join(shapes)}</div>')


def _drawing(view: View, walk: Walkthrough, at: int) -> None:
    """The tensor of the step, to scale."""
    step = walk.steps[at]
    lesson = step.lesson
    axes = list(zip(lesson.axes, step.shape, strict=True))
    sizes = ", ".join(f"{name} = {n}" for name, n in axes)
    colour = "Colour: head." if lesson.by_head else "Grey: no head owns these values."
    caption(
        f"{at + 1}. {lesson.title}",
        f"[{sizes}], {walk.name}. Drawn to scale; stronger colours: larger magnitudes. {colour}",
    )
    figure = tensor_drawing(
        _step_values(walk, at),
        lesson.axes,
        view.theme,
        heads=walkthrough.owners(walk.attention, step, walk.heads),
        selected=walk.heads[walk.index] if walk.tokens else None,
        sizes=view.sizes,
    )
    ratio = figure.layout.yaxis.range[0] / figure.layout.xaxis.range[1]
    # At the usual width of 1,060 pixels, with the margins that the figure keeps for its labels.
    proportioned(
        figure,
        f"1060 / {60 + 988 * ratio:.0f}",
        key="shape",
        alt=f"{lesson.title}: a tensor of shape {sizes}.",
        table=lambda: (["axis", "size"], [[name, n] for name, n in axes]),
    )


def _explanation(walk: Walkthrough, at: int) -> None:
    """The sentence, the formula, the line of code and the sizes of a step."""
    lesson, attention = walk.steps[at].lesson, walk.attention
    number, line = walkthrough.code_line(lesson.code)
    left, right = st.columns([3, 2], gap="medium")
    with left:
        explained.paragraph(lesson.sentence)
        st.latex(lesson.formula)
        if lesson.name == "scale" and attention.scale != attention.d_head**-0.5:
            explained.paragraph(
                f"In this layer, this model multiplies by **{attention.scale:g}** instead of "
                f"1/√d_h = {attention.d_head**-0.5:g}."
            )
        st.code(line, language="python", wrap_lines=True)
        source = f"mha_viz/attention.py, line {number}"
        explained.note(f"{source}. Formulas: Vaswani et al. 2017, section 3.2.")
    with right:
        facts(_facts(walk.steps[at]))


def _facts(step: Step) -> dict[str, str]:
    order = "contiguous" if step.tensor.is_contiguous() else "not contiguous"
    n = step.tensor.numel()
    return {
        "shape": f"[{', '.join(step.lesson.axes)}] = {step.shape}",
        "strides": f"{step.strides}, {order}",
        "storage": "new" if step.copied else "shared with the previous step (a view)",
        "values": f"{n:,} × {step.dtype} = {_bytes(step.n_bytes)}",
        "FLOPs": f"{step.flops:,}" if step.flops else "0 (no arithmetic)",
    }


def _bytes(n: int) -> str:
    for unit, size in (("MiB", 2**20), ("KiB", 2**10)):
        if n >= size:
            return f"{n / size:,.1f} {unit}"
    return f"{n} bytes"


def _values_on_demand(view: View, walk: Walkthrough, at: int) -> None:
    """The values of the step as a heatmap and a file."""
    if not explained.toggle("Show values", key="numbers", bind="query-params"):
        return
    lesson = walk.steps[at].lesson
    matrix, description = _matrix(walk, at)
    keys = lesson.axes[-1] == "T"
    caption(f"{lesson.title}: values", f"{description}.")
    figure = matrix_heatmap(
        matrix,
        view.theme,
        rows="position",
        columns="key" if keys else "column",
        tokens=walk.tokens,
        both=keys and bool(walk.tokens),
        weights=lesson.name == "softmax",
        sizes=view.sizes,
    )
    finite = matrix[np.isfinite(matrix)]
    alt = f"{description}; from {finite.min():.3g} to {finite.max():.3g}."
    chart(figure, key="numbers_map", height=520 if keys else 360, alt=alt)
    download_matrix(f"{lesson.name.replace(' ', '_')}.csv", matrix, rows=walk.tokens)


def _step_values(walk: Walkthrough, at: int) -> Array:
    """The values of a step. Weights that were masked before the softmax are NaN, not zero."""
    step = walk.steps[at]
    values: Array = step.tensor.float().cpu().numpy()
    if step.lesson.name == "softmax":
        masked = walk.steps[at - 1].tensor.isinf().cpu().numpy()
        values = np.where(masked, np.float32(np.nan), values)
    return values


def _matrix(walk: Walkthrough, at: int) -> tuple[Array, str]:
    """The values of one sequence as a matrix, those of the selected head if heads have their own.

    With what the matrix is, for its caption.
    """
    values = _step_values(walk, at)[0]
    if values.ndim == 2:
        return values, f"All {values.shape[1]} columns of sequence 0"
    by_head = values if walk.steps[at].lesson.axes[1] == "H" else values.swapaxes(0, 1)
    return by_head[walk.index], f"Head {walk.heads[walk.index]} of sequence 0"
