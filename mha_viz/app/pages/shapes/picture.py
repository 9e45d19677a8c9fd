"""The central picture of the Shapes page: the journey through a layer, and what is followed."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import streamlit as st
from torch import Tensor

from mha_viz.app.messages import notice
from mha_viz.app.pages.shapes.journey import journey
from mha_viz.app.pages.shapes.walk import Walkthrough, layer_of
from mha_viz.app.view import View
from mha_viz.app.widgets.chart import export_only
from mha_viz.app.widgets.choices import number_input, segmented_control
from mha_viz.app.widgets.recipes import recipe
from mha_viz.attention import MultiHeadAttention
from mha_viz.export import Drawn, Given, tensor_data
from mha_viz.figures.journey.cells import images
from mha_viz.figures.journey.layer import Focus, Layer, pointed
from mha_viz.figures.journey.setting import MOST_TOKENS, WIDE, Setting
from mha_viz.figures.journey.steps import STEPS
from mha_viz.figures.journey.still import still
from mha_viz.figures.theme import TextSizes, Theme
from mha_viz.head import Head
from mha_viz.lessons.walkthrough import Step
from mha_viz.trace import Array

NAMES = list(STEPS)
FIRST = "transpose"  # where the page opens: all of the reshape is seen
NO_SECOND = "none"


def show(view: View, walk: Walkthrough) -> tuple[int, Focus]:
    """Draws the journey; returns the selected step and what is followed."""
    layer = layer_of(walk.steps, walk.attention, walk.resid, walk.heads, walk.tokens, MOST_TOKENS)
    n = walk.steps[0].shape[1]
    if n > layer.T:
        notice(f"The picture shows the first {layer.T} of {n:,} tokens: more would be too small.")
    step, element, second = _in_link(layer)
    focus = _focus(view, walk, layer, element, second)
    setting = Setting(layer, focus, view.theme, WIDE, view.sizes)

    def select(choice: Mapping[str, Any]) -> None:
        _select(choice, layer, focus, view.layer if walk.tokens else None)

    journey(setting, step, stage=view.stage, on_choice=select)
    _export(view, walk, layer, focus, step)
    return step, focus


def _in_link(layer: Layer) -> tuple[int, int, str]:
    """The step, element and second head that the link selects; the journey is their control."""
    with st.container(key="unseen journey"):
        name = segmented_control("Step", NAMES, FIRST, "step", show_label=False)
        element = number_input("Element", 0, layer.d_head - 1, 0, "element")
        heads = [NO_SECOND, *_labels(layer)]
        second = segmented_control("Second head", heads, NO_SECOND, "second", show_label=False)
    return NAMES.index(name), element, second


def _labels(layer: Layer) -> list[str]:
    """The heads as the chooser and the link name them."""
    return [f"H{head}" for head in layer.heads]


def _focus(view: View, walk: Walkthrough, layer: Layer, element: int, second: str) -> Focus:
    """What is followed: on the text, the token, head and key that all pages share."""
    state, last = st.session_state, layer.T - 1
    if walk.tokens:
        token, head, key = view.token, walk.index, state.get("key_chosen")
    else:
        token, head, key = state.get("random_focus", (last, 0, None))
    token, head = min(token, last), min(head, layer.H - 1)
    strongest = int(np.nan_to_num(layer.pattern[head, token], nan=-1.0).argmax())
    key = key if key is not None and key <= last else strongest
    other = None if second == NO_SECOND else _labels(layer).index(second)
    other = None if other == head else other
    return Focus(token, head, element, key, other)


def _select(choice: Mapping[str, Any], layer: Layer, focus: Focus, number: int | None) -> None:
    """Follows what the user has clicked; `number` is that of the layer, None if it is random."""
    state = st.session_state
    step = choice.get("step")
    if isinstance(step, int) and 0 <= step < len(NAMES):
        state["step"] = NAMES[step]
    after = _after(choice, layer, focus)
    if after.head != focus.head or choice.get("head") == focus.head:
        state["second"] = _labels(layer)[focus.head] if after.head != focus.head else NO_SECOND
    if after == focus:
        return
    state["element"] = after.element
    key = after.key if after.key != focus.key else None
    if number is None:
        state["random_focus"] = after.token, after.head, key
        return
    state["token"], state["key_chosen"] = after.token, key
    state["at"] = Head(number, layer.heads[after.head]).key


def _after(choice: Mapping[str, Any], layer: Layer, focus: Focus) -> Focus:
    """What is followed after a choice; one that this layer does not have changes nothing."""
    token, head, point = (choice.get(name) for name in ("token", "head", "point"))
    if isinstance(token, int) and 0 <= token < layer.T:
        return Focus(token, focus.head, focus.element, focus.key)
    if isinstance(head, int) and 0 <= head < layer.H:
        return Focus(focus.token, head, focus.element, focus.key)
    if isinstance(point, Mapping):
        row, column = int(point.get("row", 0)), int(point.get("column", 0))
        return pointed(focus, layer, str(point.get("image")), row, column)
    return focus


def _export(view: View, walk: Walkthrough, layer: Layer, focus: Focus, at: int) -> None:
    """The still of the step, for the export panel."""
    step = walk.steps[at]
    lay_out = STEPS[step.lesson.name]
    scene = lay_out(Setting(layer, focus, view.theme, WIDE, view.sizes))
    given: dict[str, Any] = {
        "at": at,
        "heads": walk.heads,
        "focus": Given(focus, repr(focus)),
    }
    sizes = ", ".join(f"{name} = {n}" for name, n in zip(step.lesson.axes, step.shape, strict=True))
    export_only(
        recipe(view, _draw_still, **walk.given, **given),
        key="shape",
        name=f"Shape after “{step.lesson.title}”",
        alt=f"{step.lesson.title}: a tensor of shape {sizes}. {scene.sentence}",
        ratio=WIDE / scene.height,
    )


def _draw_still(
    steps: Sequence[Step],
    at: int,
    attention: MultiHeadAttention,
    resid: Tensor,
    heads: Sequence[int],
    tokens: Sequence[str],
    focus: Focus,
    theme: Theme,
    sizes: TextSizes,
) -> Drawn:
    layer = layer_of(steps, attention, resid, heads, tokens, MOST_TOKENS)
    setting = Setting(layer, focus, theme, WIDE, sizes)
    scene = STEPS[steps[at].lesson.name](setting)
    last_of = STEPS[scene.still or scene.step](setting)
    figure = still(last_of, images(layer, theme), WIDE, theme, sizes=sizes)
    data = tensor_data(step_values(steps, at), steps[at].lesson.axes)
    return figure, data


def step_values(steps: Sequence[Step], at: int) -> Array:
    """The values of a step. Weights that were masked before the softmax are NaN, not zero."""
    step = steps[at]
    values: Array = step.tensor.float().cpu().numpy()
    if step.lesson.name == "softmax":
        masked = steps[at - 1].tensor.isinf().cpu().numpy()
        values = np.where(masked, np.float32(np.nan), values)
    return values
