"""The Pruning page: the board of heads on the left, and one module for each part on the right."""

import streamlit as st

from mha_viz.app.pages.pruning import ablation, curves, importance, prune, tasks
from mha_viz.app.pages.pruning.ablation_type import Ablation, select_type
from mha_viz.app.view import View
from mha_viz.app.widgets import head_board
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.choices import choose_part
from mha_viz.app.widgets.reference_text import reference

PARTS = ["Ablation", "Tasks", "Importance", "Curves", "Prune"]


def show(view: View) -> None:
    """The selected part, next to the board of ablated heads."""
    part = choose_part(PARTS, "lab")
    left, right = st.columns([5, 7], gap="medium")
    with left:
        caption(
            "Heads",
            "Click a head to ablate or restore it; click an L or H label for its whole row or "
            "column.",
        )
        board_area = st.container()
        head_board.buttons(view)
        heads = head_board.ablated_heads(view)
        if part != "Importance":  # that part colours the board by its scores
            with board_area:
                head_board.board(view, heads)
        selected = Ablation(heads, select_type(), reference())
    with right:
        if part == "Ablation":
            ablation.show(view, selected)
        elif part == "Tasks":
            tasks.show(view, selected)
        elif part == "Importance":
            scores = importance.show(view, selected)
            with board_area:
                head_board.board(view, heads, values=scores)
        elif part == "Curves":
            curves.show(view, selected)
        else:
            prune.show(view, heads)
