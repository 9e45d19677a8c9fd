"""Attention: every head of every layer, and the chosen one token by token."""

import streamlit as st

from mha_viz.session import attention, frame

view = frame.view()

attention.lead(view, "Attention")
attention.strip(view)
left, right = st.columns(2, gap="small")
with left:
    attention.caption("All heads", "layers down, heads across;", "each thumbnail is one head's triangle of weights.")
    attention.grid(view)
with right:
    attention.caption(f"L{view.layer} H{view.head}", "a row asks, a column is read;", "each row adds up to 1.")
    attention.heatmap(view)
    attention.zoomed(view)
attention.caption(
    "How to read this.",
    "A dark line under the diagonal means “the token just before”; a dark first column is the "
    "sink, where a head rests when it has nothing to fetch; a shifted diagonal is induction: the "
    "token that followed last time.",
)
