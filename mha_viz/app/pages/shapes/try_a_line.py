"""“Try a line”: the user writes the line of a step, and sees what it gives."""

import streamlit as st

from mha_viz.app.messages import escaped
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.caption import caption
from mha_viz.lessons.code_trace import described
from mha_viz.lessons.module_run import ModuleRun, Step
from mha_viz.lessons.try_line import Answer, try_line

KEPT = 3  # answers of a step
_TRIED = "lines tried"
_Key = tuple[str, int, str]  # text and model, layer, step


def show(run: ModuleRun, step: Step, trace_key: str, layer: int) -> None:
    """The input, and the last answers, the newest first. Only this part runs for a line."""
    with st.container(key="try_a_line"):
        st.fragment(_try)(run, step, (trace_key, layer, step.name))


def _try(run: ModuleRun, step: Step, key: _Key) -> None:
    names = run.names[step.name]
    main = described([names[step.given[0]]])
    target = described(run.target(step.name))
    caption("Try a line", f"from <code>{step.given[0]}</code> {main} to {target}")
    field = f"line {step.name}"
    with st.form(f"form {step.name}", enter_to_submit=True):
        box, button = st.columns([5, 1], gap="small", vertical_alignment="bottom")
        box.text_input(
            f"Your line for the step {step.name}",
            key=field,
            placeholder=f"{step.given[0]} …",
            label_visibility="collapsed",
            persist_state="session",
            autocomplete="off",
        )
        button.form_submit_button(
            "Run", type="primary", width="stretch", on_click=_run, args=(run, step, key, field)
        )
    answers = "".join(_answer(one, step) for one in reversed(_tried().get(key, [])))
    if answers:
        st.html(f'<div role="status">{answers}</div>')
    words = [name for name in names if "." not in name]
    explained.note(f"Names: {', '.join(words)}. The line is evaluated on the tensors of this text.")
    with st.expander("One line that does it"):
        st.code(step.line, language="python", wrap_lines=True)


def _run(run: ModuleRun, step: Step, key: _Key, field: str) -> None:
    line = str(st.session_state.get(field) or "").strip()
    if line:
        answer = try_line(line, run.names[step.name], step.given[0], run.target(step.name))
        tried = _tried()
        others = [one for one in tried.pop(key, []) if one.line != line]
        tried[key] = [*others[1 - KEPT :], answer]
        while len(tried) > 24:
            del tried[next(iter(tried))]


def _tried() -> dict[_Key, list[Answer]]:
    found: dict[_Key, list[Answer]] = st.session_state.setdefault(_TRIED, {})
    return found


def _answer(answer: Answer, step: Step) -> str:
    """A line and what it gave, as HTML."""
    line = f"<code>{escaped(answer.line)}</code>"
    if answer.error:
        return f'<div class="answer">{line}<p>{escaped(answer.error)}</p></div>'
    shape = "good" if answer.same_shape else "bad"
    rows = [("shape", answer.shape, f"mono {shape}"), ("strides", answer.strides, "mono")]
    rows += [(f"shares memory with {step.given[0]}", answer.memory, "")]
    rows += [("equals the module’s", answer.equal, "good" if answer.right else "bad")]
    cells = "".join(
        f'<span>{escaped(name)}</span><span class="{kind}">{escaped(value)}</span>'
        for name, value, kind in rows
        if value
    )
    return f'<div class="answer">{line}<div class="rows">{cells}</div></div>'
