"""Heads: what each head does, in numbers, on this text, on random tokens and on many texts."""

import streamlit as st

from mha_viz.app import frame
from mha_viz.app.pages import attention, heads
from mha_viz.app.pages.heads import layers, several, table

view = frame.view()

attention.lead(view, "Heads")
part = heads.part()
if part == "Over layers":
    layers.show(view)
elif part == "Several texts":
    several.show(view, several.texts())
else:
    name = table.choose()
    numbers = table.measured(view)
    if numbers is not None:
        table.say_what_is_missing(numbers)
        left, right = st.columns(2, gap="medium")
        with left:
            table.heads_by(view, numbers, name)
            table.alike(view)
            table.roles(view, numbers)
        with right:
            table.one_head(view, numbers)
            table.all_heads(numbers, name)
        table.definitions()
