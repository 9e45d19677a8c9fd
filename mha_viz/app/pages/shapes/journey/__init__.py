"""The journey through a layer: a component that plays its steps and selects what is followed."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import streamlit as st

from mha_viz.app import link
from mha_viz.app.browser import component_code
from mha_viz.figures.journey.band import HIGH, miniatures, scale
from mha_viz.figures.journey.cells import images
from mha_viz.figures.journey.sent import as_data, item_data, uri
from mha_viz.figures.journey.setting import NARROW, Setting
from mha_viz.figures.journey.steps import STEPS
from mha_viz.figures.theme import NORMAL

_HERE = Path(__file__).parent
_journey = st.components.v2.component(
    "mha_viz_journey",
    html=(_HERE / "journey.html").read_text(encoding="utf-8"),
    css=(_HERE / "journey.css").read_text(encoding="utf-8"),
    js=component_code(_HERE / "journey.js"),
)
_steering = st.components.v2.component(
    "mha_viz_steering", html="<i></i>", js=component_code(_HERE / "steering.js")
)
COLOURS = ("page", "ink", "muted", "surface", "hairline", "control", "query", "accent")


def journey(
    setting: Setting, step: int, *, stage: bool, on_choice: Callable[[dict[str, Any]], None]
) -> None:
    """Draws the band and the selected step; `on_choice` gets what the user selects."""

    def changed() -> None:
        choice = st.session_state["journey"].get("choice")
        if isinstance(choice, dict):
            link.acknowledge("journey", choice)
            on_choice(choice)

    _journey(key="journey", data=_data(setting, stage), on_choice_change=changed)
    with st.container(key="unseen steering"):
        ack = st.session_state.get("journey_seq", 0)
        _steering(key="steering", data={"step": step, "ack": ack})


def _data(setting: Setting, stage: bool) -> dict[str, Any]:
    """All that the browser needs to play every step."""
    theme = setting.theme
    colours = {name: getattr(theme, name) for name in COLOURS} | {"lit": theme.query_fill}
    return {
        "steps": [
            {
                "name": small.step,
                "shape": small.shape,
                "sizes": small.sizes,
                "miniature": {
                    "width": small.width,
                    "height": HIGH,
                    "items": [item_data(item) for item in small.items],
                },
            }
            for small in miniatures(setting)
        ],
        "wide": _scenes(setting),
        "narrow": _scenes(replace(setting, width=NARROW, sizes=NORMAL)),
        "images": {name: uri(image) for name, image in images(setting.layer, theme).items()},
        "choice": _choice(setting),
        "scale": scale(setting),
        "stage": stage,
        "colours": colours,
    }


def _scenes(setting: Setting) -> dict[str, Any]:
    scenes = [as_data(lay_out(setting)) for lay_out in STEPS.values()]
    return {"width": setting.width, "scenes": scenes}


def _choice(setting: Setting) -> dict[str, Any]:
    layer, focus = setting.layer, setting.focus
    names = zip(layer.heads, setting.names, strict=True)
    return {
        "tokens": [setting.token_label(token) for token in range(layer.T)],
        "token": focus.token,
        "heads": [{"name": f"H{head}", "colour": colour} for head, colour in names],
        "head": focus.head,
        "other": focus.other,
    }
