"""Head: why one head looks where it looks, and what it does with what it finds."""

from mha_viz.app import frame
from mha_viz.app.pages import attention, head

view = frame.view()

attention.lead(view, "Head")
head.show(view, head.choose())
