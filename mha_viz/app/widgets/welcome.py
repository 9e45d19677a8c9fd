"""What a first visitor reads: what the page shows, what a head is, and what to click."""

import streamlit as st

from mha_viz.app.samples import effect_in
from mha_viz.app.view import View
from mha_viz.app.widgets import explained, tour

TOUR = "Find the head that copies, in seven short steps. The tour waits for you; leave it any time."


def show(view: View) -> None:
    """Two sentences until the visitor closes them, then what to look for in a sample."""
    if view.stage:
        return
    if tour.show(view):
        return
    state, trace = st.session_state, view.trace
    n_heads = trace.n_layers * trace.n_heads
    if state.get("welcomed"):
        effect = effect_in(trace.text) if view.about.source == "bundled" else None
        if effect:
            explained.html(f'<div class="caption"><b>Look for</b> {effect.sentence}</div>')
        return
    with st.container(horizontal=True, vertical_alignment="top", key="welcome"):
        explained.html(
            '<div class="caption welcome">To guess the next word, a model looks back at earlier '
            f"words. A <b>head</b> is one way of looking; this model has {n_heads}.<br><span>Click "
            f"a word to see where it looks; click a picture to change the head.</span></div>"
        )
        st.button("Start the tour", type="primary", on_click=tour.start, help=TOUR)
        st.button("Not now", type="tertiary", on_click=_close, help="Closes these two lines")


def _close() -> None:
    st.session_state["welcomed"] = True
