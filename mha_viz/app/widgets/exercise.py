"""Exercises with checked answers, one at a time; choices and the score are kept in the session."""

from collections.abc import Sequence
from pathlib import Path

import streamlit as st
import torch

from mha_viz.app.messages import problem
from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.caption import caption
from mha_viz.errors import ExerciseError
from mha_viz.lessons.exercises.answers import Shown, load, on_layer
from mha_viz.lessons.exercises.layer import MAX_TOKENS, Layer, layer_of
from mha_viz.lessons.exercises.texts import Exercise

_RULES = (Path(__file__).parent / "exercise.css").read_text(encoding="utf-8")
_FIRSTS = "exercise_firsts"  # whether the first choice in each exercise was right
_AT = "exercise_at"  # which exercise of each part is shown
_DRAWN = "exercises_drawn"  # the part whose exercises this run has drawn


def begin() -> None:
    """Forgets what the last run has drawn."""
    st.session_state[_DRAWN] = ""


def exercises(view: View, name: str) -> None:
    """The exercises of a part, on the selected layer and text; in stage mode behind a button.

    Nothing if this run has drawn them already, where the part has a better place for them.
    """
    if st.session_state.get(_DRAWN) == name:
        return
    st.session_state[_DRAWN] = name
    try:
        found = load(name)
    except ExerciseError as error:
        problem(f"The exercises of this part cannot be shown. {error}")
        return
    if not found:
        return
    st.html(f"<style>{_RULES}</style>")
    box = st.expander("Exercises") if view.stage else st.container()
    with box:
        st.fragment(_exercise)(view, name, found)


def _exercise(view: View, name: str, found: Sequence[Exercise]) -> None:
    at = min(_places().get(name, 0), len(found) - 1)
    shown = on_layer(found[at], _layer(view.trace_key, view.layer, _view=view))
    with st.container(key="exercise", gap="small"):
        _header(name, at, len(found), shown)
        explained.paragraph(shown.question)
        if shown.code:
            st.code(shown.code, language="python", line_numbers=True, wrap_lines=True)
        if shown.elsewhere:
            explained.note(
                f"Computed on a small random layer with {shown.elsewhere}, because the question "
                "has no single answer on the selected layer and text."
            )
        _choices(f"exercise {name} {at}", shown)


def _header(name: str, at: int, n: int, shown: Shown) -> None:
    firsts: dict[str, bool] = st.session_state.get(_FIRSTS, {})
    score = f" · {sum(firsts.values())} of {len(firsts)} right first time" if firsts else ""
    with st.container(horizontal=True, vertical_alignment="center", key="exercise_header"):
        caption("Exercise", f"{at + 1} of {n} · {shown.kind}{score}")
        for label, icon, to in (
            ("Previous exercise", "chevron_left", at - 1),
            ("Next exercise", "chevron_right", at + 1),
        ):
            st.button(
                "",
                icon=f":material/{icon}:",
                help=label,
                key=label.lower().replace(" ", "_"),
                disabled=not 0 <= to < n,
                on_click=_go,
                args=(name, to),
            )


def _choices(key: str, shown: Shown) -> None:
    """The choices, and why the chosen one is right or wrong."""
    chosen = st.radio(
        "Your answer",
        range(len(shown.choices)),
        index=None,
        format_func=shown.choices.__getitem__,
        key=key,
        on_change=_remember_first,
        args=(key, shown.right),
        label_visibility="collapsed",
        width="stretch",
        persist_state="session",
    )
    if chosen is None:
        return
    right = chosen == shown.right
    verdict = ":material/check: **Right.**" if right else "**Not quite.**"
    with st.container(key="exercise_right" if right else "exercise_wrong"):
        explained.paragraph(f"{verdict} {shown.explanations[chosen]}")


def _remember_first(key: str, right: int) -> None:
    """Only the first choice counts for the score, so that further tries cost nothing."""
    firsts: dict[str, bool] = st.session_state.setdefault(_FIRSTS, {})
    firsts.setdefault(key, st.session_state[key] == right)


def _go(name: str, to: int) -> None:
    _places()[name] = to


def _places() -> dict[str, int]:
    found: dict[str, int] = st.session_state.setdefault(_AT, {})
    return found


@st.cache_resource(max_entries=8, show_spinner=False)
def _layer(trace_key: str, layer: int, *, _view: View) -> Layer:
    ids = torch.tensor([_view.trace.token_ids[:MAX_TOKENS]], device=_view.model.device)
    return layer_of(_view.model.network, ids, layer)
