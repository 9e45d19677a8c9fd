"""The Head page: one head in detail, and several heads as lines."""

from mha_viz.app.messages import problem
from mha_viz.app.pages.head import dot_product, lines, sink, values
from mha_viz.app.view import View
from mha_viz.app.widgets.choices import choose_part
from mha_viz.heads.patterns import kept_heads

PARTS = {
    "Why this weight": dot_product.show,
    "Lines": lines.show,
    "Values": values.show,
    "Sink": sink.show,
}


def show(view: View) -> None:
    """The selected tab, unless the selected head has been pruned."""
    part = choose_part(PARTS, "look")
    if view.head not in kept_heads(view.trace, view.layer):
        problem(f"{view.at.label} has been pruned from this model. Choose another head.")
        return
    PARTS[part](view)
