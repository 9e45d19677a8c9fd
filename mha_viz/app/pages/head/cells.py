"""Which query and which key: two numbers, and a press on a cell or on a rung."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st

from mha_viz.app.browser import component_code
from mha_viz.app.messages import escaped
from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.figures.window import whole
from mha_viz.trace import Array

_HERE = Path(__file__).parent
_cells = st.components.v2.component(
    "mha_viz_cells",
    html='<div class="cells"\n aria-hidden="true"></div>',
    js=component_code(_HERE / "cells.js"),
)
Values = Callable[[], Array]


def query_input(view: View) -> int:
    """The query: the pinned token of all pages, as a number."""
    st.session_state["query"] = view.token
    explained.number_input(
        "Query i", 0, view.trace.n_tokens - 1, key="query", on_change=_asks, width=130,
        help="The position that looks; a press on a token of the strip chooses it too",
    )  # fmt: skip
    return view.token


def key_input(view: View, strongest: int) -> int:
    """The key, which the link carries; without a choice it is the one of the largest weight."""
    st.session_state["key"] = chosen = st.session_state.get("key_chosen")
    explained.number_input(
        "Key j", 0, view.trace.n_tokens - 1, None, key="key", on_change=_reads, width=210,
        placeholder=f"{strongest} (strongest)",
        help="The position that is looked at; a press on a cell or on a rung chooses it too",
    )  # fmt: skip
    return strongest if chosen is None else int(chosen)


def picks(
    view: View, maps: Mapping[str, Values], *, key: int | None = None, rungs: Sequence[str] = ()
) -> None:
    """Lets a press on a cell of `maps`, or on one of `rungs`, choose; and rings what is chosen.

    Each map names its chart and the values that it draws, of which a pooled cell shows the largest.
    """
    # What a press means is decided in a callback, before the page has run again.
    st.session_state["cells_drawn"] = (dict(maps), _block(view))
    _cells(
        key="cells",
        data={
            "maps": list(maps),
            "rungs": list(rungs),
            "block": _block(view),
            "query": view.token,
            "key": key,
            "tokens": list(view.trace.tokens),
            "trace_key": view.trace_key,
            "colours": {
                "query": view.theme.query,
                "page": view.theme.page,
                "ink": view.theme.ink,
                "surface": view.theme.surface,
            },
            "ack": st.session_state.get("cells_seq", 0),
        },
        on_pick_change=_on_pick,
    )


def named(view: View, position: int) -> str:
    """The token at a position, as HTML."""
    return f"<b>{escaped(view.trace.tokens[position])}</b><sub>{position}</sub>"


def strongest_in(values: Array, query: int, key: int, block: int) -> tuple[int, int]:
    """Where the number of the largest size lies in the block that begins at (query, key)."""
    part = np.abs(values[query : query + block, key : key + block])
    if not part.size or np.isnan(part).all():
        return query, key
    row, column = np.unravel_index(np.nanargmax(part), part.shape)
    return query + int(row), key + int(column)


def _block(view: View) -> int:
    return (view.window or whole(view.trace.n_tokens)).block


def _asks() -> None:
    _choose_query(int(st.session_state["query"]))


def _reads() -> None:
    st.session_state["key_chosen"] = st.session_state["key"]


def _choose_query(query: int) -> None:
    state = st.session_state
    state["token"] = query
    state["focus_seq"] = state.get("focus_seq", 0) + 1  # so that the strip takes it over


def _on_pick() -> None:
    state = st.session_state
    pick: dict[str, Any] | None = state["cells"].get("pick")
    if not isinstance(pick, dict) or pick.get("trace_key") != state.get("trace_key"):
        return
    state["cells_seq"] = int(pick.get("seq", 0))
    maps, block = state.get("cells_drawn", ({}, 1))
    key = int(pick.get("key", 0))
    if "query" not in pick:
        state["key_chosen"] = key
        return
    query = int(pick["query"])
    if block > 1 and (values := maps.get(pick.get("map"))) is not None:
        query, key = strongest_in(values(), query, key, block)
    _choose_query(query)
    state["key_chosen"] = key
