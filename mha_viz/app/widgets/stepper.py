"""Steps one after the other: Back, Play, Next, and a slider that the link carries."""

import time
from collections.abc import Callable

import streamlit as st

from mha_viz.app.widgets.choices import check_link

TICK = 0.7  # seconds a step while it plays


def steps(label: str, key: str, n: int, draw: Callable[[int], None]) -> None:
    """Controls for `n` steps, counted from 1, and below them what `draw` makes of the chosen one.

    Only this part of the page runs again for a step.
    """
    # Playing is decided out here: what runs by itself is fixed while the whole page runs.
    playing = bool(st.session_state.get(f"{key}_playing")) and n > 1
    st.fragment(_run, run_every=TICK if playing else None)(label, key, n, draw, playing)


def _run(label: str, key: str, n: int, draw: Callable[[int], None], playing: bool) -> None:
    if playing:
        _advance(key, n)
    if not st.session_state.get(f"{key}_playing") and playing:
        st.rerun()  # the whole page, which ends the playing
    draw(_controls(label, key, n, playing) - 1)


def _controls(label: str, key: str, n: int, playing: bool) -> int:
    if n < 2:
        return 1
    at = _held(key, n)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.button(
            "Back", on_click=_go, args=(key, at - 1, n), disabled=at == 1, shortcut="Left",
            key=f"{key}_back",
        )  # fmt: skip
        name, icon = ("Pause", "pause") if playing else ("Play", "play_arrow")
        if st.button(
            name, on_click=_play, args=(key, n, not playing), key=f"{key}_play",
            icon=f":material/{icon}:",
        ):  # fmt: skip
            st.rerun()
        st.button(
            "Next", on_click=_go, args=(key, at + 1, n), disabled=at == n, shortcut="Right",
            key=f"{key}_next",
        )  # fmt: skip
        # Unbound while it plays: each value written to the link would be a stop for Back.
        chosen = int(
            st.slider(label, 1, n, 1, key=key, bind=None if playing else "query-params")
        )  # fmt: skip
    if not playing:
        check_link(key, str(chosen))
    return chosen


def _held(key: str, n: int) -> int:
    """Where the slider stands, which a link sets only when it is drawn; within its limits."""
    held = st.session_state.get(key)
    if isinstance(held, int):
        if not 1 <= held <= n:
            st.session_state[key] = max(1, min(held, n))
        return max(1, min(held, n))
    asked = st.query_params.get(key, "")
    return int(asked) if asked.isdecimal() and 1 <= int(asked[:9]) <= n else 1


def _advance(key: str, n: int) -> None:
    """One step on, where a step's time has passed; the last one ends the playing."""
    state = st.session_state
    if time.monotonic() - state.get(f"{key}_moved", 0.0) < 0.8 * TICK:
        return
    _go(key, int(state.get(key, 1)) + 1, n)
    if state[key] >= n:
        state[f"{key}_playing"] = False


def _play(key: str, n: int, playing: bool) -> None:
    st.session_state[f"{key}_playing"] = playing
    st.session_state[f"{key}_moved"] = time.monotonic()
    at = int(st.session_state.get(key, 1))
    # Set anew, so that the address bar takes it up again after a pause.
    st.session_state[key] = 1 if playing and at >= n else at


def _go(key: str, to: int, n: int) -> None:
    st.session_state[key] = max(1, min(to, n))
    st.session_state[f"{key}_moved"] = time.monotonic()
