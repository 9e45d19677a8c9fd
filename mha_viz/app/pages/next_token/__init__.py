"""The Next token page: predictions at every position and layer, and text generation."""

from mha_viz.app.pages.next_token import generate, lens, positions
from mha_viz.app.view import View
from mha_viz.app.widgets.choices import choose_part

PARTS = {
    "Every position": positions.show,
    "Logit lens": lens.show,
    "Generate": generate.show,
}


def show(view: View) -> None:
    """The selected tab."""
    PARTS[choose_part(PARTS, "expects")](view)
