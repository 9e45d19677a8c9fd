"""The Shapes page: one attention layer step by step, its memory, and what each line is good for."""

import streamlit as st

from mha_viz.app.pages.shapes import bugs, memory, walk
from mha_viz.app.view import View
from mha_viz.app.widgets.choices import choose_part, segmented_control

PARTS = ["Walk", "Memory", "Break it"]


def show(view: View) -> None:
    """The chosen part; beside it, on which tensors the walk goes."""
    with st.container(horizontal=True, vertical_alignment="center"):
        part = choose_part(PARTS, "shapes")
        source = walk.SOURCES[0]
        if part == "Walk":
            source = segmented_control("Tensors", walk.SOURCES, source, "tensors", show_label=False)
    if part == "Walk":
        walk.show(view, source)
    elif part == "Memory":
        memory.show(view)
    else:
        bugs.show(view)
