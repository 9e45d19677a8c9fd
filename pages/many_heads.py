"""Many heads: six implementations of one layer, the output projection, parameters and FLOPs."""

from mha_viz.app import frame
from mha_viz.app.pages import many_heads
from mha_viz.app.widgets.caption import title_line

view = frame.view()
title_line(view, "Many heads")
many_heads.show(view)
