"""What the Head page is made of: one module for each of its parts."""

import streamlit as st

from mha_viz.heads.patterns import kept_heads
from mha_viz.session import link
from mha_viz.session.head import lines, sink, values, why
from mha_viz.session.messages import notice, problem
from mha_viz.session.view import View

PARTS = {
    "Why this weight": why.show,
    "Lines": lines.show,
    "Values": values.show,
    "Sink": sink.show,
}


def choose() -> str:
    """Which part is open."""
    part: str = st.segmented_control(
        "Part", list(PARTS), default=next(iter(PARTS)), key="look", bind="query-params",
        required=True, label_visibility="collapsed", width="content",
    )  # fmt: skip
    if word := link.strayed("look", part):
        notice(word)
    return part


def show(view: View, part: str) -> None:
    """The chosen part; a head that was taken out of its model has nothing to show."""
    if view.head not in kept_heads(view.trace, view.layer):
        problem(f"L{view.layer} H{view.head} was taken out of this model. Choose another head.")
        return
    PARTS[part](view)
