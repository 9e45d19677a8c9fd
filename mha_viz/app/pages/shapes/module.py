"""The module part of the Shapes page: the whole layer in code, what each line gives, and why."""

import math
import time

import streamlit as st
import torch

from mha_viz.app.messages import escaped, problem
from mha_viz.app.pages.shapes import try_a_line
from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.choices import segmented_control
from mha_viz.app.widgets.code_view import code_view, rules
from mha_viz.app.widgets.exercise import exercises
from mha_viz.app.widgets.selection import n_first_tokens
from mha_viz.app.work.progress import Reporter, ResultSlots, wait_for
from mha_viz.attention import MultiHeadAttention
from mha_viz.errors import ShapeError
from mha_viz.figures.text import format_bytes
from mha_viz.lessons.code_trace import described
from mha_viz.lessons.implementations import (
    IMPLEMENTATIONS,
    Comparison,
    Implementation,
    compare,
    parameters_seen,
)
from mha_viz.lessons.module_run import NAMES, STEPS, ModuleRun, Step, run_module
from mha_viz.lessons.try_line import same_memory
from mha_viz.lessons.walkthrough import layer_input

MAX_TOKENS = 128
FIRST = "transpose"  # as on the Walkthrough
FORMS = {implementation.title: implementation for implementation in IMPLEMENTATIONS}
FUSED = IMPLEMENTATIONS[0]
COLUMNS = [664, 424]
TICK = 2.5  # seconds that a step stays while it plays
PLAYING = "module played at"  # when this step was drawn, while it plays
_TO = "module goes to"
DIGITS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_comparisons = ResultSlots[tuple[Comparison, ...]](8)


def show(view: View) -> None:
    """The code of a form with the current expression framed, and what that expression gives."""
    attention = view.model.network.blocks[view.layer].attn
    if not attention.n_heads:
        problem(f"All heads of layer {view.layer} have been pruned. Choose another layer.")
        return
    rules(stage=view.stage)
    step, form = _select_step(), _select_form()
    T = n_first_tokens(view, MAX_TOKENS)
    try:
        run = _run(view.trace_key, view.layer, T, _view=view)
    except ShapeError as error:  # heads that are not C / H wide, which GPT-2 does not have
        problem(str(error))
        return
    comparisons = {c.implementation.title: c for c in _compare(view, T) or ()}
    _about(view, form, comparisons, run)
    left, right = st.columns(COLUMNS, gap="small")
    with left:
        _code(form, step, run, comparisons.get(form.title))
        _notes(form, step, attention, T)
    with right:
        _expression(form, step, run)
        try_a_line.show(run, step, view.trace_key, view.layer)
        exercises(view, "module")


def _select_step() -> Step:
    """The selected step; buttons and arrow keys select the previous or next one, or play all."""
    state = st.session_state
    if (to := state.pop(_TO, None)) is not None:  # before the control is drawn
        state["step"] = NAMES[to]
    # The buttons come before the control, which takes its value from a link only when it is drawn.
    name = state.get("step") or st.query_params.get("step")
    at = NAMES.index(name if name in NAMES else FIRST)
    with st.container(horizontal=True, vertical_alignment="center"):
        _turn("Previous step", "chevron_left", at - 1, "Left")
        _play_button(at)
        _turn("Next step", "chevron_right", at + 1, "Right")
        name = segmented_control("Step", NAMES, FIRST, "step", show_label=False)
    return STEPS[NAMES.index(name)]


def _turn(label: str, icon: str, to: int, key: str) -> None:
    st.button(
        "",
        icon=f":material/{icon}:",
        help=label,
        key=label.lower().replace(" ", "_"),
        disabled=not 0 <= to < len(NAMES),
        shortcut=key,
        on_click=_go,
        args=(to,),
    )


def _go(to: int) -> None:
    st.session_state["step"] = NAMES[max(0, min(to, len(NAMES) - 1))]
    stop()


def _play_button(at: int) -> None:
    """Plays the steps from here, or pauses; from the last step it begins again."""
    playing = PLAYING in st.session_state and at < len(NAMES) - 1
    label, icon = ("Pause", "pause") if playing else ("Play", "play_arrow")
    icon = f":material/{icon}:"
    st.button("", icon=icon, help=label, key="play_steps", on_click=_play, args=(at, not playing))
    if playing:
        st.session_state[PLAYING] = time.monotonic()  # however long a run of the page takes
        st.fragment(_advance, run_every=TICK)(at)


def _play(at: int, on: bool) -> None:
    stop()
    if on:
        state, ended = st.session_state, at == len(NAMES) - 1
        state[PLAYING] = time.monotonic()
        state[_TO] = 0 if ended else at + 1


def _advance(at: int) -> None:
    """Goes to the next step, except when it runs with the page itself."""
    state = st.session_state
    if time.monotonic() - state.get(PLAYING, math.inf) >= 0.8 * TICK:
        state[_TO] = min(at + 1, len(NAMES) - 1)
        st.rerun()


def stop() -> None:
    """Stops playing."""
    st.session_state.pop(PLAYING, None)


def _select_form() -> Implementation:
    """The selected form; its card has the subtitle below the name, as an option has only one."""
    cards = "".join(
        f'.st-key-form button:nth-child({n})::after {{ content: "{form.subtitle}" }}'
        for n, form in enumerate(IMPLEMENTATIONS, start=1)
    )
    st.html(f"<style>{cards}</style>")
    return FORMS[segmented_control("Form", list(FORMS), FUSED.title, "form", show_label=False)]


@st.cache_resource(max_entries=8, show_spinner=False)
def _run(trace_key: str, layer: int, T: int, *, _view: View) -> ModuleRun:
    network = _view.model.network
    ids = torch.tensor([_view.trace.token_ids[:T]], device=_view.model.device)
    resid, x = layer_input(network, ids, layer)
    return run_module(network.blocks[layer].attn, x, resid)


def _compare(view: View, T: int) -> tuple[Comparison, ...] | None:
    network, layer = view.model.network, view.layer
    ids = torch.tensor([view.trace.token_ids[:T]], device=view.model.device)

    def work(report: Reporter) -> tuple[Comparison, ...]:
        x = network.attention_input(ids, layer)
        return compare(network.blocks[layer].attn, x, on_progress=report)

    slot = _comparisons(view.trace_key, layer, T)
    return wait_for(slot, "Running the seven forms", work, lane="implementations")


def _about(
    view: View, form: Implementation, comparisons: dict[str, Comparison], run: ModuleRun
) -> None:
    """What is special about the form, and how far it is from the app's module."""
    more = ""
    if form.title in comparisons:
        here = comparisons[form.title].difference
        most = max(one.difference for one in comparisons.values())
        more = (
            f" On this text it differs from the app’s own module in layer {view.layer} by "
            f"at most <b>{power_of_ten(here)}</b>; none of the seven forms differs by more than "
            f"{power_of_ten(most)}."
        )
    caption("", " ".join([form.sentence, *map(escaped, run.changes)]), more)


def power_of_ten(number: float, decimals: int = 0) -> str:
    """A number as in “5·10⁻⁷”; “0” for none."""
    if not number or not math.isfinite(number):
        return "0" if number == 0 else str(number)
    digits, _, exponent = f"{number:.{decimals}e}".partition("e")
    return f"{digits}·10{str(int(exponent)).translate(DIGITS)}".replace("-", "−")


def _code(form: Implementation, step: Step, run: ModuleRun, comparison: Comparison | None) -> None:
    expression = form.expressions.get(step.name)
    shapes = dict(comparison.shapes) if comparison else {}
    if form is FUSED:
        shapes = dict(run.shapes)
        last = FUSED.code.statement(FUSED.code.span(FUSED.expressions["merge"])[0])[1]
        if _moved(run, "merge") == "copied":
            shapes[last] = f"copy  {shapes[last]}"
    framed = form.code.span(expression) if expression else None
    tinted = form.code.statement(framed[0]) if framed else None
    code = form.code.text
    code_view(
        code, shapes, framed=framed, tinted=tinted, selects=_selects(form, step), control="step"
    )


def _selects(form: Implementation, step: Step) -> dict[int, str]:
    """For each line of the code the step that it selects; the next one where it has several."""
    found: dict[int, list[str]] = {}
    for name in NAMES:
        if expression := form.expressions.get(name):
            first, last = form.code.statement(form.code.span(expression)[0])
            for line in range(first, last + 1):
                found.setdefault(line, []).append(name)
    return {
        line: steps[(steps.index(step.name) + 1) % len(steps)] if step.name in steps else steps[0]
        for line, steps in found.items()
    }


def _notes(form: Implementation, step: Step, attention: MultiHeadAttention, T: int) -> None:
    """What the code alone does not say."""
    if step.name in form.missing:
        explained.paragraph(f"**{step.name}**: {form.missing[step.name]}")
    if form.title == "ModuleList":
        seen, hidden = parameters_seen(attention.d_model, attention.d_model // attention.d_head)
        explained.paragraph(
            f"Why not a Python list: `parameters()` finds {seen:,} numbers here. With the heads in "
            f"a Python list it finds {hidden:,}, those of W_O; an optimizer would leave the heads "
            "as they are, and `state_dict()` would not save them."
        )
    lowest = torch.finfo(torch.float32).min
    nothing, lowered = (torch.full((T,), fill).softmax(0)[0] for fill in (-torch.inf, lowest))
    explained.note(
        "The formula masks with −∞. The app’s own module masks with the lowest finite number, "
        f"{power_of_ten(lowest, 1)}. A row whose keys are all masked, as in a padded text, shows "
        "why: if all its scores are −∞, its softmax is "
        f"{'NaN' if nothing.isnan() else float(nothing)}; if all are the lowest number, it is "
        f"{float(lowered):.3g} for each of {T} keys, which the module then sets to 0."
    )


def _expression(form: Implementation, step: Step, run: ModuleRun) -> None:
    """Shape and strides before and after each call of the expression, and what its line is for."""
    line = FUSED.code.span(FUSED.expressions[step.name])[0]
    where = f"line {line}" if form is FUSED else f"line {line} of the fused form"
    caption("This expression", where)
    rows = '<div class="head"><span></span><span>shape</span><span>strides</span></div>'
    operations = run.results[step.name].operations
    for n, operation in enumerate(operations):
        code = "t = q" if operation.code == "t" else operation.code
        cells = (code, described(operation.tensors), str(operation.tensors[0].stride()))
        last = ' class="last"' if n == len(operations) - 1 else ""
        rows += f"<div{last}>{''.join(f'<span>{escaped(cell)}</span>' for cell in cells)}</div>"
    st.html(f'<div class="calls">{rows}</div>')
    tensor = operations[-1].tensors[0]
    moved = {
        "": "",
        "nothing": "Nothing is copied.",
        "copied": f"Copied: {format_bytes(tensor.untyped_storage().nbytes())}.",
        "new": f"New numbers: {format_bytes(tensor.untyped_storage().nbytes())}.",
    }[_moved(run, step.name)]
    explained.paragraph(f"{moved} {step.why}".strip())


def _moved(run: ModuleRun, step: str) -> str:
    """Whether an expression copied nothing, copied its numbers or computed new ones; "" for x."""
    result = run.results[step]
    first, last = result.operations[0], result.operations[-1]
    if len(result.operations) == 1:
        return ""
    if same_memory(first.tensors[0], last.tensors[0]):
        return "nothing"
    return "copied" if result.only_layout else "new"
