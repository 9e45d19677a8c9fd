"""Attention: every head of every layer, and the selected head token by token."""

import streamlit as st

from mha_viz.app import frame
from mha_viz.app.pages import attention
from mha_viz.app.widgets import change_text, welcome
from mha_viz.app.widgets.caption import title_line

view = frame.view()
with st.container(horizontal=True, vertical_alignment="center", key="top"):
    title_line(view, "Attention")
    if not view.stage:
        change_text.popover()
welcome.show(view)
attention.show(view)
