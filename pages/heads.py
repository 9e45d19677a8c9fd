"""Heads: measures of every head on this text, on random tokens and on many texts."""

from mha_viz.app import frame
from mha_viz.app.pages import heads
from mha_viz.app.widgets.caption import title_line

view = frame.view()
title_line(view, "Heads")
heads.show(view)
