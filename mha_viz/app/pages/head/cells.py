"""The query and the key of the Head page: two inputs, and clicks on the figures of both."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st

from mha_viz.app import link
from mha_viz.app.browser import component_code
from mha_viz.app.messages import escaped
from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.figures.window import whole
from mha_viz.trace import Array

_cells = st.components.v2.component(
    "mha_viz_cells",
    html='<div class="cells"\n aria-hidden="true"></div>',
    js=component_code(Path(__file__).parent / "cells.js"),
)
COLOURS = ("query", "page", "ink", "surface")  # of the theme; the browser draws with them
Values = Callable[[], Array]


def query_input(view: View) -> int:
    """The query, which is the selected token of every page."""
    st.session_state["query"] = view.token
    explained.number_input(
        "Query i",
        0,
        view.trace.n_tokens - 1,
        key="query",
        on_change=_on_query,
        width=130,
        help="Position of the query token. You can also click a token above.",
    )
    return view.token


def key_input(view: View, strongest: int) -> int:
    """The key, whose position is in the link; the `strongest` one while none is selected."""
    st.session_state["key"] = selected = st.session_state.get("key_chosen")
    explained.number_input(
        "Key j",
        0,
        view.trace.n_tokens - 1,
        None,
        key="key",
        on_change=_on_key,
        width=210,
        placeholder=f"{strongest} (strongest)",
        help="Position of the key token. You can also click a cell or a bar.",
    )
    return strongest if selected is None else int(selected)


def select_on_click(
    view: View, maps: Mapping[str, Values], *, key: int | None = None, bars: Sequence[str] = ()
) -> None:
    """Lets clicks select a query and a key, and outlines the selected ones.

    `maps` are charts with a cell for each pair, by their keys, with the values that they draw;
    `bars` are charts with a bar for each key.
    """
    # A click is handled in a callback, before the page has run again.
    st.session_state["cells_drawn"] = (dict(maps), _block(view))
    _cells(
        key="cells",
        data={
            "maps": list(maps),
            "bars": list(bars),
            "block": _block(view),
            "query": view.token,
            "key": key,
            "tokens": list(view.trace.tokens),
            "trace_key": view.trace_key,
            "colours": {name: getattr(view.theme, name) for name in COLOURS},
            "ack": st.session_state.get("cells_seq", 0),
        },
        on_pick_change=_on_pick,
    )


def token_html(view: View, position: int) -> str:
    """The token at a position, with the position as a subscript."""
    return f"<b>{escaped(view.trace.tokens[position])}</b><sub>{position}</sub>"


def largest_in_block(values: Array, query: int, key: int, block: int) -> tuple[int, int]:
    """The pair with the largest magnitude in the block that starts at (query, key)."""
    part = np.abs(values[query : query + block, key : key + block])
    if not part.size or np.isnan(part).all():
        return query, key
    row, column = np.unravel_index(np.nanargmax(part), part.shape)
    return query + int(row), key + int(column)


def _block(view: View) -> int:
    return (view.window or whole(view.trace.n_tokens)).block


def _on_query() -> None:
    _select_query(int(st.session_state["query"]))


def _on_key() -> None:
    st.session_state["key_chosen"] = st.session_state["key"]


def _select_query(query: int) -> None:
    state = st.session_state
    state["token"] = query
    state["focus_seq"] = state.get("focus_seq", 0) + 1  # so that the strip selects it too


def _on_pick() -> None:
    state = st.session_state
    pick: dict[str, Any] | None = state["cells"].get("pick")
    if not isinstance(pick, dict) or pick.get("trace_key") != state.get("trace_key"):
        return
    link.acknowledge("cells", pick)
    maps, block = state.get("cells_drawn", ({}, 1))
    key = int(pick.get("key", 0))
    if "query" in pick:
        query = int(pick["query"])
        if block > 1 and (values := maps.get(pick.get("map"))) is not None:
            query, key = largest_in_block(values(), query, key, block)
        _select_query(query)
    state["key_chosen"] = key
