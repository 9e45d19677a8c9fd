"""Inputs whose values are in the link, with a warning if a value in a link cannot be used."""

from collections.abc import Iterable, Sequence
from typing import TypeVar
from urllib.parse import quote

import streamlit as st

from mha_viz.app import glossary, link
from mha_viz.app.messages import notice
from mha_viz.app.widgets import explained

Option = TypeVar("Option", bound=str | int)


def check_link(name: str, taken: str | Sequence[str], *, shown: str = "") -> bool:
    """Warns if the link asks for another value than `taken`; returns whether it did.

    `shown` describes `taken` in the warning, if given.
    """
    warning = link.warning(name, taken, shown=shown)
    if warning:
        notice(warning)
    return bool(warning)


def segmented_control(
    label: str, options: Sequence[Option], default: Option, key: str, *, show_label: bool = True
) -> Option:
    """The selected option; without `show_label`, only screen readers get the label."""
    if (before := st.session_state.get(key)) is not None and before not in options:
        del st.session_state[key]  # this model may not have the option that was selected before
        notice(f"{label} = {before} is not available for this model; showing {default}.")
    words = " ".join([label, *map(str, options)])
    selected: Option = st.segmented_control(
        label,
        options,
        default=default,
        key=key,
        bind="query-params",
        required=True,
        width="content",
        help=glossary.help_for(words) if show_label else None,
        label_visibility="visible" if show_label else "collapsed",
    )
    check_link(key, str(selected))
    return selected


def selectbox(label: str, options: Sequence[Option], default: Option, key: str) -> Option:
    """The selected option of a list that may be long or change."""
    if (before := st.session_state.get(key)) is not None and before not in options:
        del st.session_state[key]
        notice(f"{label} = {before} is not available here; showing {default}.")
    selected: Option = explained.selectbox(
        label, options, options.index(default), key=key, bind="query-params", width=170
    )
    check_link(key, str(selected))
    return selected


def choose_part(parts: Iterable[str], key: str) -> str:
    """The selected part of a page, by default the first."""
    names = list(parts)
    return segmented_control("Part", names, names[0], key, show_label=False)


def text_area(
    label: str, first: str, key: str, *, height: int, show_label: bool = True, help: str = ""
) -> str:
    """A text area whose text is in the link, unless it is too long; then the page says so."""
    state = st.session_state
    if key not in state and key not in st.query_params and f"{key}_typed" in state:
        state[key] = state[f"{key}_typed"]  # back from another page
    fits = len(quote(state.get(key) or "", errors="replace")) <= link.LONGEST
    if fits and state.get(f"{key}_was_long"):
        state[key] = state[key]  # set again, so that Streamlit writes it to the address bar
    state[f"{key}_was_long"] = not fits
    text = explained.text_area(
        label,
        first,
        key=key,
        bind="query-params" if fits else None,
        height=height,
        help=help or None,
        label_visibility="visible" if show_label else "collapsed",
    )
    state[f"{key}_typed"] = text
    if not fits:
        st.caption(
            "This text is too long for a link, so a shared or reloaded address will not contain it."
        )
    return text or ""


def number_input(label: str, low: int, high: int, first: int, key: str, *, help: str = "") -> int:
    """A whole number, kept within its limits as these change."""
    held = st.session_state.get(key)
    if isinstance(held, int) and not low <= held <= high:
        st.session_state[key] = max(low, min(held, high))
    first = max(low, min(first, high))
    number = explained.number_input(
        label, low, high, first, key=key, bind="query-params", width=170, help=help or None
    )
    check_link(key, str(number))
    return int(number)
