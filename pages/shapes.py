"""Shapes: one attention layer step by step, its memory layout, and common bugs."""

from mha_viz.app import frame
from mha_viz.app.pages import shapes
from mha_viz.app.widgets import path

view = frame.view()
with path.part_of(view, "shapes", "Shapes"):
    shapes.show(view)
