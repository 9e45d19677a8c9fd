"""The Heads page: the passport of each head, many heads at once, many texts."""

from mha_viz.app.pages.heads import layers, several, table
from mha_viz.app.view import View
from mha_viz.app.widgets.choices import one_of

PARTS = {"Passport": table.show, "Over layers": layers.show, "Several texts": several.show}


def show(view: View) -> None:
    """The chosen part."""
    PARTS[one_of("Part", list(PARTS), next(iter(PARTS)), "numbers_of", named=False)](view)
