"""The frame of every page: navigation, shared inputs and style."""

import streamlit as st

from mha_viz.app import frame

placeholder = frame.begin()
page = st.navigation(
    {
        "Explore": [
            st.Page("attention.py", title="Attention", icon=":material/grid_on:", default=True),
            st.Page("head.py", title="Head", icon=":material/center_focus_strong:"),
            st.Page("next_token.py", title="Next token", icon=":material/arrow_forward:"),
            st.Page("heads.py", title="Heads", icon=":material/badge:"),
            st.Page("compare.py", title="Compare", icon=":material/compare:"),
            st.Page("pruning.py", title="Pruning", icon=":material/content_cut:"),
            st.Page("talk.py", title="Talk", icon=":material/slideshow:"),
        ],
        "Learn": [
            st.Page("shapes.py", title="Shapes", icon=":material/view_in_ar:"),
            st.Page("many_heads.py", title="Many heads", icon=":material/stacks:"),
            st.Page("variants.py", title="Variants", icon=":material/account_tree:"),
            st.Page("training.py", title="Training", icon=":material/school:"),
        ],
    }
)
frame.run(page, placeholder)
