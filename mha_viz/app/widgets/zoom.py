"""The button that ends a zoom into the pattern."""

import streamlit as st

from mha_viz.app.view import View


def reset_zoom_button(view: View) -> None:
    """A button that shows the whole pattern again, if the view is zoomed in."""
    if view.window is not None:
        st.button("Reset zoom", on_click=_reset, icon=":material/zoom_out_map:", key="unzoom")


def _reset() -> None:
    state = st.session_state
    state["window"] = None
    state["focus_seq"] = state.get("focus_seq", 0) + 1  # so that the browser drops its own window
