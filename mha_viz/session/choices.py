"""Choices that the link carries: a link that asks for something else gets a word."""

from collections.abc import Sequence
from typing import TypeVar

import streamlit as st

from mha_viz.session import link
from mha_viz.session.messages import notice

Option = TypeVar("Option", bound=str | int)


def one_of(
    label: str, options: Sequence[Option], default: Option, key: str, *, named: bool = True
) -> Option:
    """One of the options; `named` writes the label over them, else it is only read out."""
    if (before := st.session_state.get(key)) is not None and before not in options:
        del st.session_state[key]  # another model may not have what was chosen before
        notice(f"{label} {before} does not fit this model; {default} is shown.")
    chosen: Option = st.segmented_control(
        label, options, default=default, key=key, bind="query-params", required=True,
        width="content", label_visibility="visible" if named else "collapsed",
    )  # fmt: skip
    if word := link.strayed(key, str(chosen)):
        notice(word)
    return chosen


def a_number(label: str, low: int, high: int, first: int, key: str, *, tip: str = "") -> int:
    """A whole number, kept within its limits as these change."""
    held = st.session_state.get(key)
    if isinstance(held, int) and not low <= held <= high:
        st.session_state[key] = max(low, min(held, high))
    first = max(low, min(first, high))
    chosen = int(
        st.number_input(
            label, low, high, first, key=key, bind="query-params", width=170, help=tip or None
        )
    )
    if word := link.strayed(key, str(chosen)):
        notice(word)
    return chosen
