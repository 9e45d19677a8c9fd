"""Compare: what changes with one word, another text, another model or ablated heads."""

from mha_viz.app import frame
from mha_viz.app.pages import compare
from mha_viz.app.widgets.caption import title_line

view = frame.view()
title_line(view, "Compare")
compare.show(view)
