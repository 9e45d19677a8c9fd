"""Attention: every head of every layer, and the chosen one token by token."""

import streamlit as st

from mha_viz.app import frame
from mha_viz.app.pages import attention

view = frame.view()

attention.lead(view, "Attention")
attention.strip(view)
left, right = st.columns(2, gap="small")
with left:
    attention.caption(
        "All heads",
        "layers down, heads across",
        "; each thumbnail is one head's triangle of weights.",
    )
    attention.grid(view)
    attention.measures(view)
with right:
    attention.caption(
        f"L{view.layer} H{view.head}", "a row asks, a column is read", "; each row adds up to 1."
    )
    attention.heatmap(view)
    attention.zoomed(view)
attention.how_to_read()
