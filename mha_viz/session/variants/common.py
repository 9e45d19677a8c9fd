"""What the parts of the Variants page share: choices in the link, facts, squares, and leave."""

import plotly.graph_objects as go
import streamlit as st

from mha_viz.session.chart import chart
from mha_viz.session.choices import a_number as a_number
from mha_viz.session.choices import one_of as one_of
from mha_viz.session.messages import escaped

QUICK = 3e11  # multiply-adds that start without being asked: seconds on one core


def may_start(key: str, multiply_adds: float, label: str, words: str) -> bool:
    """Whether the work under `key` may run now: it is quick, or the visitor asked for it."""
    asked = st.session_state.setdefault("asked_for", set())
    if multiply_adds <= QUICK or key in asked:
        return True
    st.markdown(words)
    return st.button(label, on_click=asked.add, args=(key,), type="primary", key=f"start {label}")


def square(figure: go.Figure, key: str, alt: str) -> None:
    """A figure as high as it is wide, on a screen of any width."""
    with st.container(key=f"square_{key}", height="stretch"):
        chart(figure, key=key, alt=alt, height="stretch")


def facts(rows: dict[str, str]) -> None:
    """Names and values side by side."""
    cells = "".join(f"<dt>{escaped(k)}</dt><dd>{escaped(v)}</dd>" for k, v in rows.items())
    st.html(f'<dl class="facts">{cells}</dl>')
