"""Compare: what each head does otherwise with another text, another model, or fewer heads."""

from mha_viz.app import frame
from mha_viz.app.pages import attention, compare

view = frame.view()

attention.lead(view, "Compare")
other = compare.other(view)
if other is not None:
    compare.show(view, other)
