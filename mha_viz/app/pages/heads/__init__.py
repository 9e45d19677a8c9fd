"""The Heads page: measures of every head, heads combined into one pattern, and many texts."""

from mha_viz.app.pages.heads import combined, profiles, several_texts
from mha_viz.app.view import View
from mha_viz.app.widgets.choices import choose_part

PARTS = {
    "Head profiles": profiles.show,
    "Combined heads": combined.show,
    "Several texts": several_texts.show,
}


def show(view: View) -> None:
    """The selected tab."""
    PARTS[choose_part(PARTS, "numbers_of")](view)
