"""Choices that the link carries: a link that asks for something else gets a word."""

from collections.abc import Iterable, Sequence
from typing import TypeVar
from urllib.parse import quote

import streamlit as st

from mha_viz.app import link
from mha_viz.app.messages import notice

Option = TypeVar("Option", bound=str | int)


def check_link(name: str, taken: str | Sequence[str], *, shown: str = "") -> bool:
    """Warns where the link asks for another value than `taken`; returns whether it did.

    `shown` says what is shown instead, where `taken` does not.
    """
    warning = link.warning(name, taken, shown=shown)
    if warning:
        notice(warning)
    return bool(warning)


def segmented_control(
    label: str, options: Sequence[Option], default: Option, key: str, *, show_label: bool = True
) -> Option:
    """One of the options; without `show_label` the label is only read out."""
    if (before := st.session_state.get(key)) is not None and before not in options:
        del st.session_state[key]  # another model may not have what was chosen before
        notice(f"{label} {before} does not fit this model; {default} is shown.")
    chosen: Option = st.segmented_control(
        label, options, default=default, key=key, bind="query-params", required=True,
        width="content", label_visibility="visible" if show_label else "collapsed",
    )  # fmt: skip
    check_link(key, str(chosen))
    return chosen


def choose_part(parts: Iterable[str], key: str) -> str:
    """The part of a page that the link or a click selects; at first the first one."""
    names = list(parts)
    return segmented_control("Part", names, names[0], key, show_label=False)


def text_area(
    label: str, first: str, key: str, *, height: int, show_label: bool = True, help: str = ""
) -> str:
    """A text, which the link carries while it is short enough for one; else a word says so."""
    state = st.session_state
    if key not in state and key not in st.query_params and f"{key}_typed" in state:
        state[key] = state[f"{key}_typed"]  # back from another page
    fits = len(quote(state.get(key) or "", errors="replace")) <= link.LONGEST
    if fits and state.get(f"{key}_was_long"):
        state[key] = state[key]  # set anew, so that the address bar takes it up again
    state[f"{key}_was_long"] = not fits
    text = st.text_area(
        label, first, key=key, bind="query-params" if fits else None, height=height,
        help=help or None, label_visibility="visible" if show_label else "collapsed",
    )  # fmt: skip
    state[f"{key}_typed"] = text
    if not fits:
        st.caption("This text is too long for a link: the address bar goes without it.")
    return text or ""


def number_input(label: str, low: int, high: int, first: int, key: str, *, help: str = "") -> int:
    """A whole number, kept within its limits as these change."""
    held = st.session_state.get(key)
    if isinstance(held, int) and not low <= held <= high:
        st.session_state[key] = max(low, min(held, high))
    first = max(low, min(first, high))
    chosen = int(
        st.number_input(
            label, low, high, first, key=key, bind="query-params", width=170, help=help or None
        )
    )
    check_link(key, str(chosen))
    return chosen
