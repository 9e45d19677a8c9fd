"""The board of heads: a component that switches them off and on, and the choice in the link."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from mha_viz import pruning
from mha_viz.app.browser import component_code
from mha_viz.app.messages import notice
from mha_viz.app.view import View
from mha_viz.app.widgets.chart import record_settings
from mha_viz.app.work import models
from mha_viz.figures.grid import mosaic_uri, thumbnail_size
from mha_viz.figures.theme import Theme, mix
from mha_viz.pruning import Head
from mha_viz.trace import Array

_HERE = Path(__file__).parent
_board = st.components.v2.component(
    "mha_viz_board",
    html='<div class="board" role="group"\n aria-label="Heads: click to ablate or restore"></div>',
    css=(_HERE / "head_board.css").read_text(encoding="utf-8"),
    js=component_code(_HERE / "head_board.js"),
)
HISTORY = 100  # steps that can be undone


def heads_off(view: View) -> tuple[Head, ...]:
    """Draws the field that names the heads which are off, and returns them in order.

    The field is what the link holds. What this model does not have is left out, with a word.
    """
    state = st.session_state
    if "off" not in state and "off" not in st.query_params and state.get("off_kept"):
        state["off"] = state["off_kept"]  # back from another page
    typed = st.text_input(
        "Off", "", key="off", bind="query-params", placeholder="none", on_change=_typed,
        help="The heads that are off, for example L3H4-L0H1",
    )  # fmt: skip
    named = _named(typed or "")
    here = set(pruning.all_heads(view.model.config))
    strayed = [head for head in named if head not in here]
    if strayed:
        gone = ", ".join(Head(layer, head).label for layer, head in strayed[:5])
        notice(f"{view.about.name} has no {gone}: left out of what is switched off.")
    elif typed and not named:
        notice(f"“{typed[:60]}” names no head; write L3H4-L0H1, for example.")
    off = tuple(head for head in named if head in here)
    state["off_kept"], state["off_now"] = typed or "", off
    record_settings(Heads_off=", ".join(Head(layer, head).label for layer, head in off) or "none")
    return off


def board(
    view: View, off: Iterable[Head], *, values: NDArray[np.float64] | None = None, unit: str = ""
) -> None:
    """Draws the board: thumbnails of the patterns, or `values` `[L, H]` as colours, 0 between.

    `unit` is said after a value.
    """
    trace, theme = view.trace, view.theme
    here = set(pruning.all_heads(view.model.config))
    gone = [
        Head(i, h).key
        for i in range(trace.n_layers)
        for h in range(trace.n_heads)
        if (i, h) not in here
    ]
    pooled = models.thumbnails(view.trace_key, thumbnail_size(trace.n_heads), trace)
    _board(
        key="board",
        data={
            "n_layers": trace.n_layers,
            "n_heads": trace.n_heads,
            "off": [Head(layer, head).key for layer, head in off],
            "gone": gone,
            "chosen": view.at.key,
            "image": "" if pooled is None else _image(view.trace_key, theme.name, view, pooled),
            "values": None if values is None else _coloured(values, theme, unit),
            "stage": view.stage,
            "colours": {
                "ink": theme.ink, "muted": theme.muted, "surface": theme.surface,
                "hairline": theme.hairline, "control": theme.control, "query": theme.query,
                "bad": theme.bad,
            },
            "ack": st.session_state.get("board_seq", 0),
        },
        on_choice_change=_on_choice,
    )  # fmt: skip


def buttons(view: View) -> None:
    """Undo, redo, everything on, and everything but the chosen head off."""
    state = st.session_state
    with st.container(horizontal=True):
        st.button(
            "Undo", on_click=_step, args=("undone", "done"), disabled=not state.get("done"),
            icon=":material/undo:",
        )  # fmt: skip
        st.button(
            "Redo", on_click=_step, args=("done", "undone"), disabled=not state.get("undone"),
            icon=":material/redo:",
        )  # fmt: skip
        st.button("All on", on_click=switch, args=((),), icon=":material/restart_alt:")
        others = set(pruning.all_heads(view.model.config)) - {(view.layer, view.head)}
        st.button(f"All but {view.at.label}", on_click=switch, args=(tuple(others),))


def switch(off: Iterable[Head]) -> None:
    """Switches exactly these heads off; the choice before can be undone."""
    new = tuple(sorted(set(off)))
    if _remember(new):
        _set(new)


def _remember(new: tuple[Head, ...]) -> bool:
    state = st.session_state
    before = state.get("off_now", ())
    if new == before:
        return False
    state["done"] = [*state.get("done", []), before][-HISTORY:]
    state["undone"] = []
    return True


def _set(off: tuple[Head, ...]) -> None:
    state = st.session_state
    state["off"] = "-".join(Head(layer, head).key for layer, head in off)
    state["board_seq"] = state.get("board_seq", 0) + 1


def _step(to: str, back: str) -> None:
    state = st.session_state
    if state.get(back):
        *rest, before = state[back]
        state[to] = [*state.get(to, []), state.get("off_now", ())]
        state[back] = rest
        _set(before)


def _typed() -> None:
    _remember(_named(st.session_state["off"] or ""))
    st.session_state["board_seq"] = st.session_state.get("board_seq", 0) + 1


def _on_choice() -> None:
    choice: dict[str, Any] | None = st.session_state["board"].get("choice")
    if isinstance(choice, dict):
        switch(_named("-".join(map(str, choice.get("off", [])))))
        st.session_state["board_seq"] = int(choice.get("seq", 0))


def _named(text: str) -> tuple[Head, ...]:
    return tuple(sorted(Head.find_all(text)))


@st.cache_resource(max_entries=8, show_spinner=False)
def _image(trace_key: str, theme: str, _view: View, _pooled: Array) -> str:
    del trace_key, theme  # only tell pictures apart
    block = -(-_view.trace.n_tokens // thumbnail_size(_view.trace.n_heads))
    return mosaic_uri(_pooled, _view.theme, block=block)


def _coloured(values: NDArray[np.float64], theme: Theme, unit: str) -> dict[str, dict[str, str]]:
    """A colour and words for each head, on the diverging scale; NaN has none."""
    top = float(np.nanmax(np.abs(values), initial=0.0)) or 1.0
    return {
        Head(layer, head).key: {
            "colour": mix(theme, float(value) / top),
            "text": f"{value:+.4f} {unit}".replace("-", "−"),
        }
        for (layer, head), value in np.ndenumerate(values)
        if np.isfinite(value)
    }
