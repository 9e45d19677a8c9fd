"""The Next token page: what the model expects, after which layer, and how the text goes on."""

from mha_viz.app.pages.next_token.generate import show as show_continuation
from mha_viz.app.pages.next_token.lens import show as show_lens
from mha_viz.app.pages.next_token.positions import show as show_positions
from mha_viz.app.view import View
from mha_viz.app.widgets.choices import choose_part

PARTS = {
    "Every position": show_positions,
    "Logit lens": show_lens,
    "Generate": show_continuation,
}


def show(view: View) -> None:
    """The chosen part."""
    PARTS[choose_part(PARTS, "expects")](view)
