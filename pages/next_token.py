"""Next token: what the model expects, and from where."""

from mha_viz.app import frame
from mha_viz.app.pages import attention, next_token

view = frame.view()

attention.lead(view, "Next token")
next_token.show(view, next_token.choose())
