"""What the Shapes page is made of: the walk through one layer, its memory, and its mistakes."""

from dataclasses import dataclass

import numpy as np
import streamlit as st
import torch

from mha_viz.app.messages import escaped, notice, problem
from mha_viz.app.view import View
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.chart import chart
from mha_viz.app.widgets.choices import number_input, segmented_control
from mha_viz.app.widgets.download_buttons import download_matrix
from mha_viz.attention import MultiHeadAttention, fitting_head_counts
from mha_viz.errors import ShapeError
from mha_viz.figures.shapes import tensor_drawing
from mha_viz.figures.values import matrix_heatmap
from mha_viz.lessons import walkthrough
from mha_viz.lessons.walkthrough import LESSONS, Step

STEPS = [lesson.name for lesson in LESSONS]
MOST_TOKENS = 256  # of a text: all scores of a layer are held, which grows with the square
SOURCES = ["this text", "random"]
SIZES = {"B": (1, 4, 2), "T": (1, 32, 6), "C": (1, 96, 24), "H": (1, 32, 4)}  # least, most, first


@dataclass(frozen=True, slots=True, eq=False)
class Walked:
    """A walk and whose it is."""

    steps: tuple[Step, ...]
    attention: MultiHeadAttention
    heads: tuple[int, ...]  # names of the layer's heads
    head: int  # the index of the chosen one
    tokens: tuple[str, ...]  # empty for random tensors
    where: str  # for captions


def show(view: View, source: str) -> None:
    """The chosen step of the walk on the text, or on random tensors."""
    walked = _of_text(view) if source == SOURCES[0] else _random()
    if walked is None:
        return
    at = choose_step()
    ladder(walked, at)
    drawing(view, walked, at)
    facts(walked, at)
    numbers(view, walked, at)


def _of_text(view: View) -> Walked | None:
    heads = tuple(view.model.config.kept_heads(view.layer))
    if view.head not in heads:
        problem(f"{view.at.label} was taken out of this model. Choose another head.")
        return None
    T = min(view.trace.n_tokens, MOST_TOKENS)
    if view.trace.n_tokens > T:
        notice(f"Shapes are shown for the first {T} of {view.trace.n_tokens:,} tokens.")
    attention, steps = _walk_text(view.trace_key, view.layer, T, _view=view)
    return Walked(
        steps, attention, heads, heads.index(view.head), view.trace.tokens[:T],
        f"layer {view.layer} on this text",
    )  # fmt: skip


@st.cache_resource(max_entries=8, show_spinner=False)
def _walk_text(
    trace_key: str, layer: int, T: int, *, _view: View
) -> tuple[MultiHeadAttention, tuple[Step, ...]]:
    network = _view.model.network
    ids = torch.tensor([_view.trace.token_ids[:T]], device=_view.model.device)
    attention = network.blocks[layer].attn
    return attention, walkthrough.walk(attention, network.attention_input(ids, layer))


def _random() -> Walked | None:
    with st.container(horizontal=True):
        B, T, C, H = (
            number_input(name, *limits, f"size_{name}", help=_HELP[name])
            for name, limits in SIZES.items()
        )
    try:
        attention, steps = _walk_random(B, T, C, H)
    except ShapeError as error:
        problem(str(error))
        near = fitting_head_counts(C, H)
        for column, fits in zip(st.columns(4), near, strict=False):
            column.button(
                f"H = {fits}, d_h = {C // fits}", on_click=_set_heads, args=(fits,), width="stretch"
            )
        return None
    return Walked(
        steps, attention, tuple(range(H)), 0, (), f"a random layer, C = {C}, H = {H}, seed 0"
    )


_HELP = {
    "B": "Sequences at once",
    "T": "Positions",
    "C": "Numbers a position: d_model",
    "H": "Heads; C must divide into them",
}


def _set_heads(n_heads: int) -> None:
    st.session_state["size_H"] = n_heads


@st.cache_resource(max_entries=8, show_spinner=False)
def _walk_random(
    B: int, T: int, C: int, H: int
) -> tuple[MultiHeadAttention, tuple[Step, ...]]:  # fmt: skip
    attention, x = walkthrough.random_layer(C, H, B, T)
    return attention, walkthrough.walk(attention, x)


def choose_step() -> int:
    """The index of the chosen step; buttons and the arrow keys go to the next."""
    # The buttons stand before the control, which a link sets only when it is drawn.
    asked = st.session_state.get("step") or st.query_params.get("step")
    at = STEPS.index(asked) if asked in STEPS else 0
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "Back", on_click=_go, args=(at - 1,), disabled=at == 0, shortcut="Left", key="step_back"
        )
        st.button(
            "Next", on_click=_go, args=(at + 1,), disabled=at == len(STEPS) - 1, shortcut="Right",
            key="step_next",
        )  # fmt: skip
        name = segmented_control("Step", STEPS, STEPS[0], "step", show_label=False)
    return STEPS.index(name)


def _go(to: int) -> None:
    st.session_state["step"] = STEPS[max(0, min(to, len(STEPS) - 1))]


def ladder(walked: Walked, at: int) -> None:
    """The shapes of all steps in a row, the chosen one marked."""
    shapes = [
        f"<b>{step.shape}</b>" if number == at else f"<span>{step.shape}</span>"
        for number, step in enumerate(walked.steps)
    ]
    st.html(f'<div class="ladder">{" → ".join(shapes)}</div>')


def drawing(view: View, walked: Walked, at: int) -> None:
    """The tensor of the step, to scale."""
    step = walked.steps[at]
    lesson = step.lesson
    owned = "each head in its colour" if lesson.by_head else "no head owns these numbers"
    named = list(zip(lesson.axes, step.shape, strict=True))
    sizes = ", ".join(f"{name} = {n}" for name, n in named)
    caption(
        f"{at + 1}. {lesson.title}",
        f"[{sizes}], {walked.where}; to scale, a pixel is a number, stronger where it is larger; "
        f"{owned}.",
    )
    chosen = walked.heads[walked.head] if walked.tokens else None
    values = _values(walked, at)
    figure = tensor_drawing(
        values,
        lesson.axes,
        view.theme,
        heads=walkthrough.owners(walked.attention, step, walked.heads),
        chosen=chosen,
        sizes=view.sizes,
    )
    ratio = figure.layout.yaxis.range[0] / figure.layout.xaxis.range[1]
    # At the usual width of 1,060 pixels, with the margins that the figure keeps for its labels.
    st.html(f"<style>:root {{ --shape: 1060 / {60 + 988 * ratio:.0f}; }}</style>")
    with st.container(key="shape_box", height="stretch"):
        chart(
            figure, key="shape", height="stretch",
            alt=f"{lesson.title}: a tensor of shape {sizes}.",
            table=lambda: (["axis", "size"], [[name, n] for name, n in named]),
        )  # fmt: skip


def facts(walked: Walked, at: int) -> None:
    """Sentence, formula, sizes and the line of code."""
    step = walked.steps[at]
    lesson = step.lesson
    number, line = walkthrough.code_line(lesson.code)
    left, right = st.columns([3, 2], gap="medium")
    with left:
        st.markdown(lesson.sentence)
        st.latex(lesson.formula)
        attention = walked.attention
        if lesson.name == "scale" and attention.scale != attention.d_head**-0.5:
            st.markdown(
                f"This model multiplies by **{attention.scale:g}** in this layer, not by "
                f"1/√d_h = {attention.d_head**-0.5:g}."
            )
        st.code(line, language="python", wrap_lines=True)
        st.caption(f"mha_viz/attention.py, line {number}. Formulas: Vaswani et al. 2017, 3.2.")
    with right:
        st.html(_table(step))


def _table(step: Step) -> str:
    letters = "[" + ", ".join(step.lesson.axes) + "]"
    lies = "a copy of its own" if step.copied else "no copy: the memory of the step before"
    counted = "in order" if step.tensor.is_contiguous() else "not in order (not contiguous)"
    rows = {
        "shape": f"{letters} = {step.shape}",
        "strides": f"{step.strides}, {counted}",
        "memory": lies,
        "numbers": f"{step.tensor.numel():,} × {step.dtype} = {_bytes(step.n_bytes)}",
        "FLOPs": f"{step.flops:,}" if step.flops else "0: nothing is computed",
    }
    cells = "".join(f"<dt>{name}</dt><dd>{escaped(text)}</dd>" for name, text in rows.items())
    return f'<dl class="facts">{cells}</dl>'


def _bytes(n: int) -> str:
    for unit, size in (("MiB", 2**20), ("KiB", 2**10)):
        if n >= size:
            return f"{n / size:,.1f} {unit}"
    return f"{n} bytes"


def numbers(view: View, walked: Walked, at: int) -> None:
    """The numbers themselves, on demand."""
    if not st.toggle("Show the numbers", key="numbers", bind="query-params"):
        return
    step = walked.steps[at]
    matrix, what = _matrix(walked, at)
    square = step.lesson.axes[-1] == "T"
    caption(f"{step.lesson.title}, the numbers", f"{what}.")
    chart(
        matrix_heatmap(
            matrix, view.theme, rows="position", columns="key" if square else "column",
            tokens=walked.tokens, both=square and bool(walked.tokens),
            weights=step.lesson.name == "softmax", sizes=view.sizes,
        ),
        key="numbers_map", height=520 if square else 360,
        alt=f"{what}; from {np.nanmin(_finite(matrix)):.3g} to {np.nanmax(_finite(matrix)):.3g}.",
    )  # fmt: skip
    download_matrix(f"{step.lesson.name}.csv", matrix, rows=walked.tokens)


def _values(walked: Walked, at: int) -> np.ndarray:
    """The numbers of a step; what was masked before a softmax is blank, not nought."""
    step = walked.steps[at]
    values: np.ndarray = step.tensor.float().cpu().numpy()
    if step.lesson.name == "softmax":
        values = np.where(np.isinf(walked.steps[at - 1].tensor.cpu().numpy()), np.nan, values)
    return values


def _matrix(walked: Walked, at: int) -> tuple[np.ndarray, str]:
    values = _values(walked, at)[0]
    if values.ndim == 2:
        return values, f"all {values.shape[1]} columns of sequence 0"
    by_head = values if walked.steps[at].lesson.axes[1] == "H" else values.swapaxes(0, 1)
    return by_head[walked.head], f"head {walked.heads[walked.head]} of sequence 0"


def _finite(matrix: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(matrix), matrix, np.nan)
