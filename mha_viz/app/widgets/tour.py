"""A tour of the Attention page that finds the induction circuit: it asks, and waits for a click.

The step is in the link (`tour=3`), counted from 1. A step ends when the view is what it asks for.
"""

from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st

from mha_viz.app.samples import DEFAULT, SAMPLES
from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.head import Head

PREVIOUS, COPIES = (Head(0, 1), Head(2, 5)), (Head(3, 3), Head(3, 0), Head(3, 4))
SECOND = SAMPLES["The cat and the rug"]


@dataclass(frozen=True, slots=True)
class Step:
    """What a step says and asks, when it is done, and what it does for a visitor who skips it."""

    says: str
    asks: str
    done: Callable[[View], bool]
    answer: dict[str, str | int]


STEPS = (
    Step(
        "This text says the same thing twice, and stops before its last word.",
        "Click the picture L0 H1, in the first row.",
        lambda view: view.at == PREVIOUS[0],
        {"at": "L0H1"},
    ),
    Step(
        "The dark line lies just below the diagonal: each token looks at the one before it.",
        "Click the last “princess” in the text and see where it looks.",
        lambda view: view.token == 14,
        {"token": 14},
    ),
    Step(
        "It looks at “the”, the token before it. So every token now holds what preceded it.",
        "Click a picture in the last row that is named “induction”.",
        lambda view: view.at in COPIES,
        {"at": "L3H3"},
    ),
    Step(
        "This head looks for an earlier copy of the current word, and at what followed it there.",
        "Which token followed “golden” before? Click the last “golden”.",
        lambda view: view.token == 16,
        {"token": 16},
    ),
    Step(
        "It looks at “ring”, which followed “golden” before, and the model expects “ring”.",
        "The first head made this possible. Find another previous-token head, in row L2.",
        lambda view: view.at == PREVIOUS[1],
        {"at": "L2H5"},
    ),
    Step(
        "A previous-token head and an induction head: together they are the induction circuit.",
        "Does it work elsewhere? Under “Change the text”, choose “The cat and the rug”.",
        lambda view: view.trace.text == SECOND,
        {"text": SECOND, "at": "L3H3"},
    ),
    Step(
        "It does: the last “The” looks at both words “cat”, and the model expects “cat”.",
        "Now type a text of your own that repeats itself.",
        lambda view: view.trace.text not in (DEFAULT, SECOND),
        {},
    ),
)


def begin() -> None:
    """Takes the step from the link, with the text of the tour if the link has none."""
    state, asked = st.session_state, st.query_params.get("tour", "")
    if "tour" in state:
        return
    state["tour"] = min(int(asked[:2]), len(STEPS)) if asked.isdecimal() else 0
    if state["tour"] and not {"text", "model"} & set(st.query_params):
        for step in STEPS[: state["tour"] - 1]:
            _answer(step)


def start() -> None:
    """Begins the tour on its own text."""
    state = st.session_state
    state["model"], state["text"], state["token"] = "bundled", DEFAULT, None
    state["tour"], state["at"] = 1, "L3H3"


def show(view: View) -> bool:
    """Draws the current step, if the tour is on; a step that is done gives way to the next."""
    state = st.session_state
    if 0 < state["tour"] < len(STEPS) and STEPS[state["tour"] - 1].done(view):
        state["tour"] += 1
    number: int = state["tour"]
    if number:
        st.query_params["tour"] = str(number)
    elif "tour" in st.query_params:
        del st.query_params["tour"]
    if not number:
        return False
    step, last = STEPS[number - 1], number == len(STEPS)
    with st.container(horizontal=True, vertical_alignment="top", key="tour_box"):
        explained.html(
            f'<div class="caption welcome tour" role="status">{step.says}<br><span><b>'
            f"{number} of {len(STEPS)}</b> {step.asks}</span></div>"
        )
        if not last:
            st.button("Skip this step", type="tertiary", on_click=_skip)
        st.button("End" if last else "Leave the tour", type="tertiary", on_click=_leave)
    return True


def _skip() -> None:
    state = st.session_state
    _answer(STEPS[state["tour"] - 1])
    state["tour"] += 1


def _answer(step: Step) -> None:
    st.session_state["opened on"] = None  # keeps the head where the text changes
    for name, value in step.answer.items():
        st.session_state[name] = value


def _leave() -> None:
    st.session_state["tour"] = 0
    st.session_state["welcomed"] = True
