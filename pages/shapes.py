"""Shapes: one attention layer step by step, its memory layout, and what each line is for."""

from mha_viz.app import frame
from mha_viz.app.pages import shapes
from mha_viz.app.widgets.caption import title_line

view = frame.view()
title_line(view, "Shapes")
shapes.show(view)
