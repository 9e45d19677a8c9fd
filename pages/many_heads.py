"""Many heads: a list of heads against one product, the output projection, parameters, FLOPs."""

from mha_viz.app import frame
from mha_viz.app.pages import many_heads
from mha_viz.app.widgets import path

view = frame.view()
with path.part_of(view, "many_heads", "Many heads"):
    many_heads.show(view)
