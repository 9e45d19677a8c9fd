"""The Next token page: what the model expects, after which layer, and how the text goes on."""

import streamlit as st

from mha_viz.session import link
from mha_viz.session.messages import notice
from mha_viz.session.next_token.go_on import show as show_continuation
from mha_viz.session.next_token.lens import show as show_lens
from mha_viz.session.next_token.positions import show as show_positions
from mha_viz.session.view import View

PARTS = {
    "Every position": show_positions,
    "Logit lens": show_lens,
    "Go on": show_continuation,
}


def choose() -> str:
    """Which of the three parts is open."""
    part: str = st.segmented_control(
        "Part", list(PARTS), default=next(iter(PARTS)), key="expects", bind="query-params",
        required=True, label_visibility="collapsed", width="content",
    )  # fmt: skip
    if word := link.strayed("expects", part):
        notice(word)
    return part


def show(view: View, part: str) -> None:
    """The chosen part."""
    PARTS[part](view)
