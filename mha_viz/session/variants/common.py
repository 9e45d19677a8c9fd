"""What the parts of the Variants page share: choices in the link, facts, squares, and leave."""

from collections.abc import Sequence
from typing import TypeVar

import plotly.graph_objects as go
import streamlit as st

from mha_viz.session import link
from mha_viz.session.chart import chart
from mha_viz.session.messages import escaped, notice

QUICK = 3e11  # multiply-adds that start without being asked: seconds on one core

Option = TypeVar("Option", str, int)


def one_of(label: str, options: Sequence[Option], default: Option, key: str) -> Option:
    """A choice that the link carries; a link that asks for something else gets a word."""
    if (before := st.session_state.get(key)) is not None and before not in options:
        del st.session_state[key]  # another model may not have what was chosen before
        notice(f"{label} {before} does not fit this model; {default} is shown.")
    chosen: Option = st.segmented_control(
        label, options, default=default, key=key, bind="query-params", required=True,
        width="content",
    )  # fmt: skip
    if word := link.strayed(key, str(chosen)):
        notice(word)
    return chosen


def a_number(label: str, low: int, high: int, first: int, key: str) -> int:
    """A whole number that the link carries, kept within its limits as these change."""
    held = st.session_state.get(key)
    if isinstance(held, int) and not low <= held <= high:
        st.session_state[key] = max(low, min(held, high))
    chosen = int(
        st.number_input(
            label, low, high, max(low, min(first, high)), key=key, bind="query-params", width=170
        )
    )
    if word := link.strayed(key, str(chosen)):
        notice(word)
    return chosen


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
