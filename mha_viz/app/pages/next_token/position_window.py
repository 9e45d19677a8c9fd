"""The positions that fit side by side on the Next token page, and how to move to others."""

import streamlit as st

from mha_viz.app.view import View
from mha_viz.app.widgets import explained

MAX_POSITIONS, MAX_ON_STAGE = 18, 14  # positions; more would leave too little room for each token


def visible_positions(view: View, n: int) -> range:
    """The positions to draw: all `n`, or as many as fit around the selected token.

    In that case, also draws a slider and two buttons that select another token.
    """
    n_visible = MAX_ON_STAGE if view.stage else MAX_POSITIONS
    if n <= n_visible:
        return range(n)
    selected = min(view.token, n - 1)
    _controls(selected, n_visible, last=n - 1)
    first = max(0, min(selected - n_visible // 2, n - n_visible))
    return range(first, first + n_visible)


def note(positions: range, n: int) -> str:
    """A sentence for captions that says which of the `n` positions are drawn; "" for all."""
    if len(positions) == n:
        return ""
    return f" Showing positions {positions.start:,} to {positions.stop - 1:,} of {n:,}."


def select_token(position: int) -> None:
    """Makes this the selected token on every page."""
    st.session_state["token"] = position


def _controls(selected: int, step: int, *, last: int) -> None:
    st.session_state["position"] = selected
    with st.container(horizontal=True, vertical_alignment="bottom"):
        _button("Earlier", "Left", max(0, selected - step), at_end=selected == 0)
        _button("Later", "Right", min(last, selected + step), at_end=selected == last)
        explained.slider("Position", 0, last, key="position", on_change=_on_slider)


def _button(label: str, shortcut: str, target: int, *, at_end: bool) -> None:
    st.button(
        label,
        key=label.lower(),
        shortcut=shortcut,
        disabled=at_end,
        on_click=select_token,
        args=(target,),
    )


def _on_slider() -> None:
    select_token(int(st.session_state["position"]))
