"""Head: why one head looks where it looks, and what it does with what it finds."""

from mha_viz.app import frame
from mha_viz.app.pages import head
from mha_viz.app.widgets.caption import title_line

view = frame.view()
title_line(view, "Head")
head.show(view)
