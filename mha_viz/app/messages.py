"""Messages on a page: user text made safe for Markdown and HTML, and never a traceback."""

import html
import logging
import re
import string

import streamlit as st

_LINK_STARTS = re.compile(r"(?i)(?<=http)(?=s?:)|(?<=www)(?=\.)|(?<=ftp)(?=:)|(?=@)")
_JOINER = "\u2060"  # invisible; stops Markdown from turning an address into a link
_PUNCTUATION = re.compile(f"([{re.escape(string.punctuation)}])")
_log = logging.getLogger("mha_viz")


def plain(text: str) -> str:
    """The text escaped so that Streamlit's Markdown shows it as typed, without making links."""
    unlinked = _LINK_STARTS.sub(_JOINER, text)
    return _PUNCTUATION.sub(r"\\\1", unlinked).replace("\n", " ")


def escaped(text: str) -> str:
    """The text escaped so that HTML shows each character as typed."""
    return html.escape(text)


def problem(text: str) -> None:
    """An error box: something cannot be done. Takes plain text."""
    st.error(plain(text), icon=":material/error:")


def notice(text: str) -> None:
    """A warning box: something was not done quite as asked. Takes plain text."""
    st.warning(plain(text), icon=":material/info:")


def unexpected(error: Exception) -> bool:
    """Shows an error without details and logs them; `st.App` calls it for uncaught exceptions."""
    _log.error("Unexpected error on a page", exc_info=error)
    out_of_memory = isinstance(error, MemoryError) or "not enough memory" in str(error)
    if out_of_memory:
        problem(
            "This needs more memory than the server has. Use a shorter text or a smaller model."
        )
    else:
        problem(
            "Unexpected error. Choose another head or model, or reload the page (copy your text "
            "first if it is very long). Details are in the server log."
        )
    return True
