"""The frame of every page: navigation, the shared inputs, and the style."""

import streamlit as st

from mha_viz.session import frame

waiting = frame.begin()
page = st.navigation(
    [st.Page("attention.py", title="Attention", icon=":material/grid_on:", default=True)]
)
frame.run(page, waiting)
