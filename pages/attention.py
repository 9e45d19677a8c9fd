"""Attention: every head of every layer, and the selected head token by token."""

from mha_viz.app import frame
from mha_viz.app.pages import attention
from mha_viz.app.widgets.caption import title_line

view = frame.view()
title_line(view, "Attention")
attention.show(view)
