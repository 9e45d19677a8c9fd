"""What a visitor is told: user text made safe for Markdown, and no traceback ever."""

import html
import logging
import re
import string

import streamlit as st

_LINK = re.compile(r"(?i)(?<=http)(?=s?:)|(?<=www)(?=\.)|(?<=ftp)(?=:)|(?=@)")
_JOINER = "\u2060"  # invisible; it keeps Markdown from making a link of an address
_PUNCTUATION = re.compile(f"([{re.escape(string.punctuation)}])")
_log = logging.getLogger("mha_viz")


def plain(text: str) -> str:
    """The text so that Streamlit's Markdown shows each character as it is, links included."""
    unlinked = _LINK.sub(_JOINER, text)
    return _PUNCTUATION.sub(r"\\\1", unlinked).replace("\n", " ")


def escaped(text: str) -> str:
    """The text so that HTML shows each character as it is."""
    return html.escape(text)


def problem(text: str) -> None:
    """Something was asked for that cannot be done."""
    st.error(plain(text), icon=":material/error:")


def notice(text: str) -> None:
    """Something was done otherwise than asked."""
    st.warning(plain(text), icon=":material/info:")


def unforeseen(error: Exception) -> bool:
    """Tells the visitor that something broke, and the operator what; the handler of `st.App`."""
    _log.error("Unforeseen error in a page", exc_info=error)
    out_of_memory = isinstance(error, MemoryError) or "not enough memory" in str(error)
    if out_of_memory:
        problem(
            "That needs more memory than this machine has. Take a shorter text or a smaller model."
        )
    else:
        problem(
            "Something broke that should not have. Your text is kept: reload the page, or choose "
            "another head or model. The server's log says what happened."
        )
    return True
