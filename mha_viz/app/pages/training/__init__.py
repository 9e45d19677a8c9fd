"""The Training page: two character-level models trained side by side, in curves and patterns."""

from mha_viz.app.pages.training import board, settings
from mha_viz.app.view import View


def show(view: View) -> None:
    """The settings, the buttons, and the training while it runs."""
    board.show(view, settings.select_plan())
