"""The board of heads: a component that ablates and restores heads; the link holds the choice."""

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from mha_viz import pruning
from mha_viz.app import link
from mha_viz.app.browser import component_code
from mha_viz.app.messages import notice
from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.chart import record_settings
from mha_viz.app.work import models
from mha_viz.figures.grid import mosaic_uri, thumbnail_size
from mha_viz.figures.theme import Theme, diverging_colour
from mha_viz.head import Head
from mha_viz.trace import Array

_HERE = Path(__file__).parent
_board = st.components.v2.component(
    "mha_viz_board",
    html='<div class="board" role="group"\n aria-label="Heads: click to ablate or restore"></div>',
    css=(_HERE / "head_board.css").read_text(encoding="utf-8"),
    js=component_code(_HERE / "head_board.js"),
)
COLOURS = ("ink", "muted", "surface", "hairline", "control", "query", "bad")
HISTORY = 100  # steps that can be undone


def ablated_heads(view: View) -> tuple[Head, ...]:
    """Draws the field that names the ablated heads, and returns them in order.

    The field is what the link holds. Heads that this model does not have are ignored with a
    message.
    """
    state = st.session_state
    if "off" not in state and "off" not in st.query_params and state.get("off_kept"):
        state["off"] = state["off_kept"]  # back from another page
    typed = explained.text_input(
        "Ablated heads",
        "",
        key="off",
        bind="query-params",
        placeholder="none",
        on_change=_typed,
        help="The heads to ablate, for example L3H4-L0H1",
    )
    named = _named(typed or "")
    model_heads = set(pruning.all_heads(view.model.config))
    unknown = [head for head in named if head not in model_heads]
    if unknown:
        labels = ", ".join(head.label for head in unknown[:5])
        notice(f"{view.about.name} has no {labels}, so nothing is ablated there.")
    elif typed and not named:
        notice(f"“{typed[:60]}” does not name a head. Write L3H4-L0H1, for example.")
    ablated = tuple(head for head in named if head in model_heads)
    state["off_kept"], state["ablated"] = typed or "", ablated
    record_settings(Ablated_heads=", ".join(head.label for head in ablated) or "none")
    return ablated


def board(
    view: View,
    ablated: Iterable[Head],
    *,
    values: NDArray[np.float64] | None = None,
    unit: str = "",
) -> None:
    """Draws the board: thumbnails of the patterns, or `values` `[L, H]` on a colour scale around 0.

    `unit` is written after each value.
    """
    trace, theme = view.trace, view.theme
    pooled = models.thumbnails(view.trace_key, thumbnail_size(trace.n_heads), trace)
    _board(
        key="board",
        data={
            "n_layers": trace.n_layers,
            "n_heads": trace.n_heads,
            "ablated": [head.key for head in ablated],
            "pruned": _pruned(view),
            "selected": view.at.key,
            "image": "" if pooled is None else _image(view.trace_key, theme.name, view, pooled),
            "values": None if values is None else _coloured(values, theme, unit),
            "stage": view.stage,
            "colours": {name: getattr(theme, name) for name in COLOURS},
            "ack": st.session_state.get("board_seq", 0),
        },
        on_choice_change=_on_choice,
    )


def buttons(view: View) -> None:
    """Undo, redo, restore all heads, and ablate all but the selected one."""
    others = tuple(set(pruning.all_heads(view.model.config)) - {view.at})
    with st.container(horizontal=True):
        _step_button("Undo", "undone", "done")
        _step_button("Redo", "done", "undone")
        st.button("Restore all", on_click=ablate, args=((),), icon=":material/restart_alt:")
        st.button(f"Ablate all but {view.at.label}", on_click=ablate, args=(others,))


def ablate(heads: Collection[Head]) -> None:
    """Ablates exactly these heads, as a step that can be undone."""
    new = tuple(sorted(set(heads)))
    if _remember(new):
        _set(new)


def _step_button(label: str, to: str, back: str) -> None:
    st.button(
        label,
        on_click=_step,
        args=(to, back),
        disabled=not st.session_state.get(back),
        icon=f":material/{label.lower()}:",
    )


def _step(to: str, back: str) -> None:
    """Moves a choice from the steps `back` to the board, and the board's current one to `to`."""
    state = st.session_state
    if state.get(back):
        *rest, before = state[back]
        state[to] = [*state.get(to, []), state.get("ablated", ())]
        state[back] = rest
        _set(before)


def _remember(new: tuple[Head, ...]) -> bool:
    """Adds the current choice to the steps that can be undone; False if `new` equals it."""
    state = st.session_state
    before = state.get("ablated", ())
    if new == before:
        return False
    state["done"] = [*state.get("done", []), before][-HISTORY:]
    state["undone"] = []
    return True


def _set(heads: tuple[Head, ...]) -> None:
    state = st.session_state
    state["off"] = "-".join(head.key for head in heads)
    state["board_seq"] = state.get("board_seq", 0) + 1


def _typed() -> None:
    state = st.session_state
    _remember(_named(state["off"] or ""))
    state["board_seq"] = state.get("board_seq", 0) + 1


def _on_choice() -> None:
    choice: dict[str, Any] | None = st.session_state["board"].get("choice")
    if isinstance(choice, dict):
        ablate(_named("-".join(map(str, choice.get("ablated", [])))))
        link.acknowledge("board", choice)


def _named(text: str) -> tuple[Head, ...]:
    return tuple(sorted(Head.find_all(text)))


def _pruned(view: View) -> list[str]:
    """The keys of the heads that have been pruned from the model."""
    config = view.model.config
    every = (Head(i, h) for i in range(config.n_layers) for h in range(config.n_heads))
    kept = set(pruning.all_heads(config))
    return [head.key for head in every if head not in kept]


@st.cache_resource(max_entries=8, show_spinner=False)
def _image(trace_key: str, theme: str, _view: View, _pooled: Array) -> str:
    del trace_key, theme  # they name the image in the cache
    return mosaic_uri(_pooled, _view.theme)


def _coloured(values: NDArray[np.float64], theme: Theme, unit: str) -> dict[str, dict[str, str]]:
    """A colour on the diverging scale and a text for each head; NaN has none."""
    top = float(np.nanmax(np.abs(values), initial=0.0)) or 1.0
    return {
        Head(layer, head).key: {
            "colour": diverging_colour(theme, float(value) / top),
            "text": f"{value:+.4f} {unit}".replace("-", "−"),
        }
        for (layer, head), value in np.ndenumerate(values)
        if np.isfinite(value)
    }
