"""Head: why one head looks where it looks, and what it does with what it finds."""

from mha_viz.session import attention, frame, head

view = frame.view()

attention.lead(view, "Head")
head.show(view, head.choose())
