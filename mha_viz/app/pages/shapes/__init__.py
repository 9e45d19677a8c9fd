"""The Shapes page: one attention layer step by step, its memory, and what each line is good for."""

import streamlit as st

from mha_viz.app.pages.shapes import bugs, memory, walk
from mha_viz.app.view import View
from mha_viz.app.widgets.choices import one_of

PARTS = ["Walk", "Memory", "Break it"]


def show(view: View) -> None:
    """The chosen part; beside it, on which tensors the walk goes."""
    with st.container(horizontal=True, vertical_alignment="center"):
        part = one_of("Part", PARTS, PARTS[0], "shapes", named=False)
        source = walk.SOURCES[0]
        if part == "Walk":
            source = one_of("Tensors", walk.SOURCES, source, "tensors", named=False)
    if part == "Walk":
        walk.show(view, source)
    elif part == "Memory":
        memory.show(view)
    else:
        bugs.show(view)
