"""Streamlit's texts and widgets, with help from the glossary for the technical words in them.

`explained.toggle("W_O", key=…)` is `st.toggle` with a question mark that explains W_O; a `help` of
your own comes before the glossary's.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import streamlit as st

from mha_viz.app import glossary

F = TypeVar("F", bound=Callable[..., Any])


def _explained(draw: F) -> F:
    """The same function, with help for the technical words of its first argument."""

    @wraps(draw)
    def drawn(text: str, *args: Any, help: str | None = None, **options: Any) -> Any:
        return draw(text, *args, help=glossary.help_for(text, help), **options)

    return cast(F, drawn)


note = _explained(st.caption)
paragraph = _explained(st.markdown)
selectbox = _explained(st.selectbox)
multiselect = _explained(st.multiselect)
pills = _explained(st.pills)
segmented_control = _explained(st.segmented_control)
toggle = _explained(st.toggle)
slider = _explained(st.slider)
number_input = _explained(st.number_input)
text_input = _explained(st.text_input)
text_area = _explained(st.text_area)
file_uploader = _explained(st.file_uploader)


def html(text: str, *, also: str = "", more: str | None = None) -> None:
    """HTML of one block, such as a line over a figure; `also` names words that are explained too.

    `more` comes before these explanations. User text in the block must be escaped.
    """
    # A blank line would end the HTML and begin Markdown.
    block = " ".join(text.splitlines())
    st.markdown(block, unsafe_allow_html=True, help=glossary.help_for(f"{text} {also}", more))
