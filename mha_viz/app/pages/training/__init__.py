"""The Training page: what is trained, on which text, and how far it has come."""

from mha_viz.app.pages.training import page
from mha_viz.app.view import View


def show(view: View) -> None:
    """The settings, the buttons, and the training as it goes on."""
    page.lead()
    plan = page.choices()
    page.controls(plan)
    page.board(view, plan)
