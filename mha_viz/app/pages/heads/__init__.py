"""The Heads page: the passport of each head, many heads at once, many texts."""

from mha_viz.app.pages.heads import layers, several, table
from mha_viz.app.view import View
from mha_viz.app.widgets.choices import choose_part

PARTS = {"Head profiles": table.show, "Combined heads": layers.show, "Several texts": several.show}


def show(view: View) -> None:
    """The chosen part."""
    PARTS[choose_part(PARTS, "numbers_of")](view)
