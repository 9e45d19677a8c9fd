"""Pruning: what happens without a head, to the text just typed and to text that it never saw."""

import streamlit as st

from mha_viz.session import attention, frame, pruning, reference_text
from mha_viz.session.pruning import board, curves, hand, importance, surgery, tasks, ways

view = frame.view()

attention.lead(view, "Pruning")
part = pruning.part()
left, right = st.columns([5, 7], gap="medium")
with left:
    attention.caption("Heads", "press to switch off or on; L and H switch a row, a column.")
    place = st.container()
    board.buttons(view)
    off = board.heads_off(view)
    if part != "Importance":  # which colours it once the scores are there
        with place:
            board.board(view, off)
    method = ways.way()
    reference = reference_text.reference()
with right:
    if part == "By hand":
        found = hand.switched(view, off, method, reference)
        if found is not None:
            hand.summary(view, off, found)
            hand.next_token(view, found)
            hand.losses(view, found)
            hand.changed(view, found)
            hand.save(view, found)
    elif part == "Tasks":
        tasks.induction(view, off, method, reference)
        tasks.names(view, off, method, reference)
        tasks.own(view, off, method, reference)
    elif part == "Importance":
        scores = importance.show(view, importance.choose(method), reference)
        with place:
            board.board(view, off, values=scores)
    elif part == "Curves":
        settings = curves.choose(view, reference)
        points = curves.gathered(view, settings, method, reference)
        if points:
            curves.draw(view, points, settings)
            curves.answers(points, settings)
    else:
        surgery.show(view, off)
