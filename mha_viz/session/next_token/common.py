"""What the parts of the Next token page share: the positions that are drawn, names, and work."""

from collections.abc import Iterable

import plotly.graph_objects as go
import streamlit as st

from mha_viz.session import jobs
from mha_viz.session.chart import chart
from mha_viz.session.running import Work, results
from mha_viz.session.view import View

COLUMNS = 18  # positions side by side; more would leave too little of each token


def window(view: View, n: int) -> range:
    """The positions that are drawn, of the first `n`: all, or COLUMNS around the pinned token.

    Where there are more, a slider and two buttons move the pin.
    """
    if n <= COLUMNS:
        return range(n)
    at = min(view.token, n - 1)
    st.session_state["position"] = at
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.button(
            "Earlier", on_click=_pin, args=(max(0, at - COLUMNS),), disabled=at == 0,
            shortcut="Left", key="earlier",
        )  # fmt: skip
        st.button(
            "Later", on_click=_pin, args=(min(n - 1, at + COLUMNS),), disabled=at == n - 1,
            shortcut="Right", key="later",
        )  # fmt: skip
        st.slider("Position", 0, n - 1, key="position", on_change=_take_slider)
    first = max(0, min(at - COLUMNS // 2, n - COLUMNS))
    return range(first, first + COLUMNS)


def pin(position: int) -> None:
    """Makes this the chosen token of the text, here and on every other page."""
    _pin(position)


def _pin(position: int) -> None:
    st.session_state["token"] = position


def _take_slider() -> None:
    _pin(int(st.session_state["position"]))


def drawn(seen: range, n: int) -> str:
    """Which positions a figure shows, where these are not all."""
    if len(seen) == n:
        return ""
    return f" Positions {seen.start:,} to {seen.stop - 1:,} of {n:,} are drawn."


def names(view: View, ids: Iterable[int]) -> list[str]:
    """What tokens of the vocabulary are called, each by itself."""
    return [token.label for token in view.model.read(list(ids))]


def tokens_box(figure: go.Figure, *, key: str, alt: str, name: str, height: int, n: int) -> None:
    """A figure of `n` columns of tokens; a narrow screen moves it sideways, in a box of its own."""
    st.html(f"<style>:root {{ --columns: {n}; }}</style>")
    with st.container(key="tokens_box"):
        chart(figure, key=key, alt=alt, name=name, height=height)


def found(slot: str, name: str, work: Work, *, total: int, what: str) -> tuple[list, bool]:
    """The results of `work` so far, and whether it is over; a slot holds one piece of work."""
    state = st.session_state
    before = state.get(f"in {slot}")
    if before is not None and before != name:
        jobs.forget(before)
    state[f"in {slot}"] = name
    return results(name, work, total=total, what=what)
