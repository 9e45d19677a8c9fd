"""Next token: what the model expects, and from where."""

from mha_viz.session import attention, frame, next_token

view = frame.view()

attention.lead(view, "Next token")
next_token.show(view, next_token.choose())
