"""The Walkthrough part of the Shapes page: one attention layer step by step."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import streamlit as st

from mha_viz.app.pages.shapes import operands, picture, why
from mha_viz.app.pages.shapes.picture import step_values
from mha_viz.app.pages.shapes.walk import Walkthrough, of_random_input, of_text
from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.chart import chart
from mha_viz.app.widgets.download_buttons import download_matrix
from mha_viz.app.widgets.recipes import recipe
from mha_viz.app.widgets.tables import facts
from mha_viz.export import Drawn, Recipe, matrix_data
from mha_viz.figures.journey.setting import MOST_TOKENS
from mha_viz.figures.theme import TextSizes, Theme
from mha_viz.figures.values import matrix_heatmap
from mha_viz.lessons import walkthrough
from mha_viz.lessons.walkthrough import LESSONS, Step
from mha_viz.trace import Array

STEPS = [lesson.name for lesson in LESSONS]
SOURCES = ["this text", "random"]


def show(view: View, source: str) -> None:
    """The journey through a layer, on the text or on random input, and its selected step."""
    walk = of_text(view) if source == SOURCES[0] else of_random_input()
    if walk is None:
        return
    at, focus = picture.show(view, walk)
    of = {"index": focus.head, "query": focus.token, "key": focus.key}
    if walk.tokens:
        operands.show(view, STEPS[at], T=min(len(walk.tokens), MOST_TOKENS), **of)
    else:
        x = walk.steps[0].tensor
        operands.show_random(view, STEPS[at], walk.attention, x, walk.given, **of)
    why.show(view, walk, focus.head)
    _explanation(walk, at)
    _values_on_demand(view, walk, at)


def _recipe(view: View, draw: Callable[..., Drawn], walk: Walkthrough, at: int) -> Recipe:
    """A recipe of a figure of the steps."""
    given: dict[str, Any] = {"at": at, "heads": walk.heads, "index": walk.index}
    return recipe(view, draw, **walk.given, **given)


def _explanation(walk: Walkthrough, at: int) -> None:
    """The sentence, the formula, the line of code and the sizes of a step."""
    lesson, attention = walk.steps[at].lesson, walk.attention
    number, line = walkthrough.code_line(lesson)
    left, right = st.columns([3, 2], gap="medium")
    with left:
        explained.paragraph(lesson.sentence)
        st.latex(lesson.formula)
        if lesson.name == "scores" and attention.scale != attention.d_head**-0.5:
            explained.paragraph(
                f"In this layer, this model multiplies by **{attention.scale:g}** instead of "
                f"1/√d_h = {attention.d_head**-0.5:g}."
            )
        st.code(line, language="python", wrap_lines=True)
        source = f"mha_viz/{lesson.module}.py, line {number}"
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
    matrix, description = _matrix(walk.steps, at, walk.heads, walk.index)
    keys = lesson.axes[-1] == "T"
    caption(f"{lesson.title}: values", f"{description}.")
    finite = matrix[np.isfinite(matrix)]
    alt = f"{description}; from {finite.min():.3g} to {finite.max():.3g}."
    drawn, name = _recipe(view, _draw_values, walk, at), f"Values after “{lesson.title}”"
    size: dict[str, Any] = {"height": 520, "ratio": 1.15} if keys else {"height": 360}
    chart(drawn, key="numbers_map", name=name, alt=alt, **size)
    download_matrix(f"{lesson.title.lower().replace(' ', '_')}.csv", matrix, rows=walk.tokens)


def _draw_values(
    steps: Sequence[Step],
    at: int,
    heads: Sequence[int],
    index: int,
    tokens: Sequence[str],
    theme: Theme,
    sizes: TextSizes,
) -> Drawn:
    matrix, _ = _matrix(steps, at, heads, index)
    lesson = steps[at].lesson
    keys = lesson.axes[-1] == "T"
    figure = matrix_heatmap(
        matrix,
        theme,
        rows="position",
        columns="key" if keys else "column",
        tokens=tokens,
        both=keys and bool(tokens),
        weights=lesson.name == "softmax",
        sizes=sizes,
    )
    columns = ("key", tokens) if keys else ("column", ())
    arrays = {lesson.name: matrix, "tokens": tokens}
    data = matrix_data(matrix, ("position", tokens), columns, value=lesson.name, arrays=arrays)
    return figure, data


def _matrix(steps: Sequence[Step], at: int, heads: Sequence[int], index: int) -> tuple[Array, str]:
    """The values of one sequence as a matrix, and a description of it for the caption.

    Of the selected head, if each head has its own values.
    """
    values = step_values(steps, at)[0]
    if values.ndim == 2:
        return values, f"All {values.shape[1]} columns of sequence 0"
    by_head = values if steps[at].lesson.axes[1] == "H" else values.swapaxes(0, 1)
    return by_head[index], f"Head {heads[index]} of sequence 0"
