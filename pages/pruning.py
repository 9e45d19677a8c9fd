"""Pruning: what happens without a head, on your text and on held-out text."""

from mha_viz.app import frame
from mha_viz.app.pages import pruning
from mha_viz.app.widgets.caption import title_line

view = frame.view()
title_line(view, "Pruning")
pruning.show(view)
