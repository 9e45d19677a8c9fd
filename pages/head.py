"""Head: why one head looks where it does, and what it passes on from there."""

from mha_viz.app import frame
from mha_viz.app.pages import head
from mha_viz.app.widgets.caption import title_line

view = frame.view()
title_line(view, "Head")
head.show(view)
