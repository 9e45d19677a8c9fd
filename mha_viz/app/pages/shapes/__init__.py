"""The Shapes page: one attention layer step by step, its memory, its code and bugs."""

import streamlit as st

from mha_viz.app.pages.shapes import bugs, layout, module, walkthrough
from mha_viz.app.view import View
from mha_viz.app.widgets.choices import choose_part, segmented_control

PARTS = ["Walkthrough", "Memory layout", "The module", "Bugs"]


def show(view: View) -> None:
    """The selected part; next to its name, the input of the walkthrough."""
    with st.container(horizontal=True, vertical_alignment="center"):
        part = choose_part(PARTS, "shapes")
        source = walkthrough.SOURCES[0]
        if part == "Walkthrough":
            source = segmented_control(
                "Input", walkthrough.SOURCES, source, "tensors", show_label=False
            )
    if part != "The module":
        module.stop()
    if part == "Walkthrough":
        walkthrough.show(view, source)
    elif part == "Memory layout":
        layout.show(view)
    elif part == "The module":
        module.show(view)
    else:
        bugs.show(view)
