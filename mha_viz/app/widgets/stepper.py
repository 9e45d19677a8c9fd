"""Controls for a series of steps: Back, Play, Next, and a slider whose value is in the link."""

import time
from collections.abc import Callable
from functools import partial

import streamlit as st

from mha_viz.app.widgets import explained
from mha_viz.app.widgets.choices import check_link

TICK = 0.7  # seconds per step while it plays


def steps(label: str, key: str, n: int, draw: Callable[[int], None]) -> None:
    """Controls for `n` steps, counted from 1, and below them what `draw` makes of the current one.

    `draw` takes the step counted from 0. Only this part of the page runs again for a step.
    """
    # Read here, because the interval of a fragment is fixed when the whole page runs.
    playing = bool(st.session_state.get(f"{key}_playing")) and n > 1
    st.fragment(_run, run_every=TICK if playing else None)(label, key, n, draw, playing)


def _run(label: str, key: str, n: int, draw: Callable[[int], None], playing: bool) -> None:
    if playing:
        _advance(key, n)
    if not st.session_state.get(f"{key}_playing") and playing:
        st.rerun()  # the whole page, which ends the automatic reruns of this fragment
    draw(_controls(label, key, n, playing) - 1)


def _controls(label: str, key: str, n: int, playing: bool) -> int:
    if n < 2:
        return 1
    step = _current(key, n)
    button = partial(st.button, on_click=_go)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        back, ahead = (key, step - 1, n), (key, step + 1, n)
        button("Back", args=back, disabled=step == 1, shortcut="Left", key=f"{key}_back")
        _play_button(key, n, playing)
        button("Next", args=ahead, disabled=step == n, shortcut="Right", key=f"{key}_next")
        # Not in the link while it plays: Back would stop at every step.
        selected = int(
            explained.slider(label, 1, n, 1, key=key, bind=None if playing else "query-params")
        )
    if not playing:
        check_link(key, str(selected))
    return selected


def _play_button(key: str, n: int, playing: bool) -> None:
    label, icon = ("Pause", "pause") if playing else ("Play", "play_arrow")
    if st.button(
        label,
        on_click=_play,
        args=(key, n, not playing),
        key=f"{key}_play",
        icon=f":material/{icon}:",
    ):
        st.rerun()


def _current(key: str, n: int) -> int:
    """The current step within its limits; the slider takes it from a link only when it is drawn."""
    held = st.session_state.get(key)
    if isinstance(held, int):
        if not 1 <= held <= n:
            st.session_state[key] = max(1, min(held, n))
        return max(1, min(held, n))
    asked = st.query_params.get(key, "")
    return int(asked) if asked.isdecimal() and 1 <= int(asked[:9]) <= n else 1


def _advance(key: str, n: int) -> None:
    """Advances one step if its time has come; stops playing at the last step."""
    state = st.session_state
    if time.monotonic() - state.get(f"{key}_moved", 0.0) < 0.8 * TICK:
        return
    _go(key, int(state.get(key, 1)) + 1, n)
    if state[key] >= n:
        state[f"{key}_playing"] = False


def _play(key: str, n: int, playing: bool) -> None:
    state = st.session_state
    state[f"{key}_playing"] = playing
    state[f"{key}_moved"] = time.monotonic()
    step = int(state.get(key, 1))
    # Set again, so that Streamlit writes it to the address bar after a pause.
    state[key] = 1 if playing and step >= n else step


def _go(key: str, to: int, n: int) -> None:
    st.session_state[key] = max(1, min(to, n))
    st.session_state[f"{key}_moved"] = time.monotonic()
