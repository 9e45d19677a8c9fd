"""What the address bar holds beyond the bound widgets, and what to say of a link that is off."""

import time
from collections.abc import Sequence

import streamlit as st

UNBOUND = ("token", "window")
STAYS = 8.0  # seconds for which a word on a link is said
LONGEST = 16_000  # characters of an encoded text; servers and chats cut or refuse far longer links


def restore() -> None:
    """Once a visit: reads the token and the zoomed part from the link, and keeps its raw values.

    Streamlit drops a bound value that does not fit without a word; the raw ones let `strayed`
    say that word.
    """
    state = st.session_state
    if "link" in state:
        return
    state["link"] = dict(st.query_params.items())
    token, window = (state["link"].get(name, "") for name in UNBOUND)
    if token.isdecimal():
        state["token"] = int(token[:6])
    edges = window.split("-")
    if len(edges) == 4 and all(edge.isdecimal() for edge in edges):
        state["window"] = [int(edge[:6]) for edge in edges]


def keep() -> None:
    """Writes the token and the zoomed part back to the address bar."""
    state = st.session_state
    token, window = state.get("token"), state.get("window")
    wanted = {
        "token": "" if token is None else str(token),
        "window": "-".join(map(str, window)) if window else "",
    }
    for name, value in wanted.items():
        if not value and name in st.query_params:
            del st.query_params[name]
    changed = {n: v for n, v in wanted.items() if v and st.query_params.get(n) != v}
    if changed:
        st.query_params.update(changed)


def strayed(name: str, taken: str | Sequence[str], *, shown: str = "") -> str:
    """A word about a link whose value for `name` could not be used, for a while; else empty.

    `taken` is what is shown instead, or all of several. The word stays for some seconds, since work
    that ends beside the page draws the page again.
    """
    said: dict[str, tuple[str, float]] = st.session_state.setdefault("said", {})
    asked = st.session_state.get("link", {}).pop(name, None)
    several = [taken] if isinstance(taken, str) else taken
    if asked is not None and not any(_same(asked, one) for one in several):
        word = f"The link asks for {name} = {asked[:60]}, which is not there; "
        said[name] = f"{word}{shown or ', '.join(several) or 'none'} is shown.", time.monotonic()
    word, since = said.get(name, ("", 0.0))
    return word if time.monotonic() - since < STAYS else ""


def _same(asked: str, taken: str) -> bool:
    """Whether a link's value was taken; a number may be written in more than one way."""
    try:
        return asked == taken or float(asked) == float(taken)
    except ValueError:
        return False
