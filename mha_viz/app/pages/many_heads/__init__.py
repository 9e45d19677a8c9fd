"""The Many heads page: why there are several, a list, one product, W_O, and what they cost."""

from mha_viz.app.pages.many_heads.a_list import show as show_a_list
from mha_viz.app.pages.many_heads.cost import show as show_cost
from mha_viz.app.pages.many_heads.one_product import show as show_one_product
from mha_viz.app.pages.many_heads.opinions import show as show_opinions
from mha_viz.app.pages.many_heads.projection import show as show_projection
from mha_viz.app.view import View
from mha_viz.app.widgets.choices import choose_part

PARTS = {
    "Why several heads": show_opinions,
    "A list of heads": show_a_list,
    "One product": show_one_product,
    "Output projection": show_projection,
    "Cost": show_cost,
}


def show(view: View) -> None:
    """The selected part."""
    PARTS[choose_part(PARTS, "many")](view)
