"""Pruning: what happens without a head, to the text just typed and to text that it never saw."""

import streamlit as st

from mha_viz.app import frame
from mha_viz.app.pages import attention, pruning
from mha_viz.app.pages.pruning import by_hand, curves, importance, methods, surgery, tasks
from mha_viz.app.widgets import head_board, reference_text

view = frame.view()

attention.lead(view, "Pruning")
part = pruning.part()
left, right = st.columns([5, 7], gap="medium")
with left:
    attention.caption("Heads", "press to switch off or on; L and H switch a row, a column.")
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
        found = by_hand.switched(view, off, method, reference)
        if found is not None:
            by_hand.summary(view, off, found)
            by_hand.next_token(view, found)
            by_hand.losses(view, found)
            by_hand.changed(view, found)
            by_hand.save(view, found)
    elif part == "Tasks":
        tasks.induction(view, off, method, reference)
        tasks.names(view, off, method, reference)
        tasks.own(view, off, method, reference)
    elif part == "Importance":
        scores = importance.show(view, importance.choose(method), reference)
        with place:
            head_board.board(view, off, values=scores)
    elif part == "Curves":
        settings = curves.choose(view, reference)
        points = curves.gathered(view, settings, method, reference)
        if points:
            curves.draw(view, points, settings)
            curves.answers(points, settings)
    else:
        surgery.show(view, off)
