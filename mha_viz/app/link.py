"""Query parameters that are not bound to a widget, and warnings about values in links."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from mha_viz.app.browser import run_script

UNBOUND = ("token", "key", "side", "window")  # selected by a click or a drag
STAYS = 8.0  # seconds for which a warning is shown
# Option labels are also values in links, so links made before a label was reworded still work.
RENAMED: dict[str, dict[str, str]] = {  # key -> {value in old links: value now}
    "colour": {"vs even": "vs uniform"},
    "shapes": {"Walk": "Walkthrough", "Memory": "Memory layout", "Break it": "Bugs"},
    "step": {
        "input": "x",
        "project": "q k v",
        "scale": "scores",
        "weigh": "z",
        "weighted sum": "z",
        "back": "merge",
        "transpose back": "merge",
    },
    "layout": {"Contiguous": "Merge"},
    "mistake": {"merge as it lies": "no transpose back"},
    "variants": {"Shared keys": "Grouped-query attention"},
    "cache_of": {"a token": "one token", "a context": "full context"},
    "many": {
        "Tellings": "A list of heads",
        "Implementations": "A list of heads",
        "Counting": "Cost",
        "Parameters and FLOPs": "Cost",
    },
    "lab": {"By hand": "Ablation", "Take out": "Prune"},
    "orders": {
        "worst first": "most important first",
        "gradient again": "gradient, recomputed",
    },
    "way": {"position-mean": "position-wise mean"},
    "elements": {"by size": "by magnitude"},
    "expects": {"Go on": "Generate"},
    "go_on": {"own words": "your own"},
    "lens_colour": {"final token": "final choice", "next token": "actual next token"},
    "numbers_of": {"Passport": "Head profiles", "Over layers": "Combined heads"},
    "measure": {
        "previous_token": "Previous token",
        "first_token": "First token (sink)",
        "self": "Itself",
        "duplicate_token": "Duplicate token",
        "induction": "Induction",
        "prefix_matching": "Prefix matching",
        "entropy": "Entropy",
        "distance": "Mean distance in tokens",
        "confidence": "Confidence",
        "positional": "Positional",
        "rare_token": "Rarest token",
        "syntactic_by_offset": "Near, at varying offsets",
    },
    "against": {"without heads": "ablated heads"},
}
SEVERAL = ("orders",)  # keys of widgets that hold several values
LONGEST = 16_000  # characters of an encoded text; servers and chat apps reject far longer links
_ONE_ENTRY_PER_PRESS = Path(__file__).parent / "link.js"


def restore() -> None:
    """Reads the unbound parameters from the link, once per session and after Back or Forward.

    Keeps the raw values of the first link: Streamlit silently drops a bound value that does not
    fit, and `warning` reports it.
    """
    state = st.session_state
    context = get_script_run_ctx()
    if "link" not in state:
        state["link"] = dict(st.query_params.items())
        _translate()
    elif context is None or not context.is_history_navigation:
        return
    state.pop("trace_key", None)  # so that the token and the zoom of the link are kept
    token, key, side, window = (st.query_params.get(name, "") for name in UNBOUND)
    state["token"] = int(token[:6]) if token.isdecimal() else None
    state["key_chosen"] = int(key[:6]) if key.isdecimal() else None
    state["side"] = "key" if side == "key" else None
    edges = window.split("-")
    whole = len(edges) == 4 and all(edge.isdecimal() for edge in edges)
    state["window"] = [int(edge[:6]) for edge in edges] if whole else None


def _translate() -> None:
    """Gives each widget the new name of a value in an old link, which Streamlit would drop."""
    state = st.session_state
    for key, renamed in RENAMED.items():
        values = st.query_params.get_all(key)
        if not renamed.keys().isdisjoint(values):
            taken = [renamed.get(value, value) for value in values]
            state[key] = taken if key in SEVERAL else taken[0]
            state["link"][key] = taken[-1]


def save(last: int) -> None:
    """Writes the unbound parameters to the address bar; link.js makes one history entry per click.

    `last` is the token that is pinned by default; it is only written if the link already has one.
    """
    state = st.session_state
    token, key, window = (state.get(name) for name in ("token", "key_chosen", "window"))
    if token == last and "token" not in st.query_params:
        token = None
    wanted = {
        "token": "" if token is None else str(token),
        "key": "" if key is None else str(key),
        "side": state.get("side") or "",
        "window": "-".join(map(str, window)) if window else "",
    }
    for name, value in wanted.items():
        if not value and name in st.query_params:
            del st.query_params[name]
    changed = {n: v for n, v in wanted.items() if v and st.query_params.get(n) != v}
    if changed or state.pop("link due", False):
        st.query_params.update(changed)  # sends all parameters
    run_script(_ONE_ENTRY_PER_PRESS)


def acknowledge(component: str, choice: Mapping[str, Any]) -> None:
    """Notes the number of a choice that a component has sent, and lets the link follow.

    The whole link is sent again: a parameter may seem to have its value already, because the
    browser sent its choice before it had the link of the one before it.
    """
    st.session_state[f"{component}_seq"] = int(choice.get("seq", 0))
    st.session_state["link due"] = True


def warning(name: str, taken: str | Sequence[str], *, shown: str = "") -> str:
    """Warning text if the link's value for `name` could not be used, else "".

    `taken` is the value in use, or all values if there are several; `shown` describes it in the
    warning, if given. The warning stays for a few seconds, because the page may run again
    meanwhile.
    """
    warnings: dict[str, tuple[str, float]] = st.session_state.setdefault("link warnings", {})
    asked = st.session_state.get("link", {}).pop(name, None)
    several = [taken] if isinstance(taken, str) else taken
    if asked is not None and not any(_same(asked, one) for one in several):
        instead = shown or ", ".join(several) or "none"
        text = f"The link's value {name} = {asked[:60]} is not available; showing {instead}."
        warnings[name] = text, time.monotonic()
    text, since = warnings.get(name, ("", 0.0))
    return text if time.monotonic() - since < STAYS else ""


def _same(asked: str, taken: str) -> bool:
    """Whether a link's value is in use; a number may be written in more than one way."""
    try:
        return asked == taken or float(asked) == float(taken)
    except ValueError:
        return False
