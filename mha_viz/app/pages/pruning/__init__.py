"""The Pruning page: the board of heads on the left, and one module for each part on the right."""

import streamlit as st

from mha_viz.app.pages.pruning import by_hand, curves, importance, methods, surgery, tasks
from mha_viz.app.view import View
from mha_viz.app.widgets import head_board, reference_text
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.choices import choose_part

PARTS = ["By hand", "Tasks", "Importance", "Curves", "Take out"]


def show(view: View) -> None:
    """The chosen part, with the heads that are off beside it."""
    part = choose_part(PARTS, "lab")
    left, right = st.columns([5, 7], gap="medium")
    with left:
        caption("Heads", "press to switch off or on; L and H switch a row, a column.")
        place = st.container()
        head_board.buttons(view)
        off = head_board.heads_off(view)
        if part != "Importance":  # which colours it once the scores are there
            with place:
                head_board.board(view, off)
        method = methods.way()
        reference = reference_text.reference()
    with right:
        if part == "By hand":
            by_hand.show(view, off, method, reference)
        elif part == "Tasks":
            tasks.show(view, off, method, reference)
        elif part == "Importance":
            scores = importance.show(view, importance.choose(method), reference)
            with place:
                head_board.board(view, off, values=scores)
        elif part == "Curves":
            curves.show(view, method, reference)
        else:
            surgery.show(view, off)
