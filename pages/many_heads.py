"""Many heads: the same layer told other ways, what W_O does, and what it all costs."""

from mha_viz.app import frame
from mha_viz.app.pages import many_heads
from mha_viz.app.widgets.caption import title_line

view = frame.view()
title_line(view, "Many heads")
many_heads.show(view)
