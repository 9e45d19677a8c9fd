"""Next token: the prediction at every position, layer by layer, and text generation."""

from mha_viz.app import frame
from mha_viz.app.pages import next_token
from mha_viz.app.widgets.caption import title_line

view = frame.view()
title_line(view, "Next token")
next_token.show(view)
