"""The token strip: a component that shows the tokens and links them to the grid and the heatmap."""

import base64
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st

from mha_viz.app import link
from mha_viz.app.browser import component_code
from mha_viz.app.view import View
from mha_viz.app.work import models
from mha_viz.figures.grid import name_room
from mha_viz.figures.theme import THEMES
from mha_viz.figures.window import whole
from mha_viz.tokens import explain, marks_used
from mha_viz.trace import Array

STEPS = 4000  # from a weight of 0 to 1, as in pattern.js: multiples of 0.0005 begin a step
_HERE = Path(__file__).parent
_strip = st.components.v2.component(
    "mha_viz_strip",
    html=(
        '<div class="token-strip">\n<div class="strip" role="listbox" aria-label="Tokens"></div>\n'
        '<div class="below"><div class="sentence" aria-live="polite"></div>'
        '<div class="legend"></div></div>\n</div>'
    ),
    css=(_HERE / "token_strip.css").read_text(encoding="utf-8"),
    js=component_code(_HERE / "token_strip.js"),
)


def token_strip(view: View) -> None:
    """The text as tokens, for the selected head, linked to the figures below."""
    trace = view.trace
    pattern = models.pattern(view.trace_key, view.layer, view.head, trace)
    _strip(
        key="strip",
        data={
            "tokens": [[t.label, t.kind, explain(t), *t.span] for t in trace.details],
            "trace_key": view.trace_key,
            "pattern": pack(pattern),
            "n_layers": trace.n_layers,
            "n_heads": trace.n_heads,
            "at": view.at.key,
            "token": view.token,
            "window": view.window_edges,
            "room": name_room(trace.n_heads),
            "block": (view.window or whole(trace.n_tokens)).block,  # tokens per side of a cell
            "scale": view.scale,
            "stage": view.stage,
            "theme": view.theme.name,
            "palettes": {name: asdict(theme) for name, theme in THEMES.items()},
            "legend": marks_used(trace.details),
            "ack": st.session_state.get("focus_seq", 0),
        },
        on_focus_change=_on_focus,
    )


def pack(pattern: Array) -> str:
    """The lower triangle, row by row, as base64 of 12-bit numbers; two share three bytes.

    A number says in which of STEPS steps the weight lies. No step contains a boundary of rounding
    to two or three digits, so the middle of a step is written with the same digits as the weight.
    """
    rows, columns = np.tril_indices(len(pattern))
    numbers = (pattern[rows, columns].astype(np.float64) * STEPS).astype(np.uint16)
    pairs = np.append(numbers, np.zeros(len(numbers) % 2, np.uint16)).reshape(-1, 2)
    first, second = pairs.T
    packed = np.stack([first & 255, first >> 8 | (second & 15) << 4, second >> 4], axis=1)
    return base64.b64encode(packed.astype(np.uint8).tobytes()).decode("ascii")


def _on_focus() -> None:
    focus: dict[str, Any] | None = st.session_state["strip"].get("focus")
    if not isinstance(focus, dict):
        return
    state = st.session_state
    link.acknowledge("focus", focus)
    if focus.get("theme") in THEMES:
        state["theme"] = focus["theme"]
    state["at"] = str(focus.get("at"))
    if focus.get("trace_key") == state.get("trace_key"):
        state["token"] = focus.get("token")
        state["window"] = focus.get("window")
