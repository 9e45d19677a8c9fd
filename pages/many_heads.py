"""Many heads: the same layer told other ways, what W_O does, and what it all costs."""

from mha_viz.app import frame
from mha_viz.app.pages import attention, many_heads

view = frame.view()

attention.lead(view, "Many heads")
part = many_heads.part()
layer = many_heads.layer(view)
if part == "Counting":
    many_heads.counting(view)
elif layer is not None and part == "Tellings":
    many_heads.timing(view)
    many_heads.tellings_table(view, layer)
elif layer is not None:
    many_heads.reach(view, layer)
