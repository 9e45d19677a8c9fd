"""The Talk page: scenes of the app, each with a title and a sentence, played full screen."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import streamlit as st

from mha_viz import checkpoints, talk
from mha_viz.app.browser import component_code
from mha_viz.app.messages import escaped, notice, problem
from mha_viz.app.view import View
from mha_viz.app.widgets import explained, talk_file
from mha_viz.app.widgets.caption import about, caption
from mha_viz.app.work.models import TITLES
from mha_viz.checkpoints import hub
from mha_viz.errors import TalkError
from mha_viz.figures.theme import THEMES

_HERE = Path(__file__).parent
_CSS, _NOTES_CSS = (
    (_HERE / name).read_text(encoding="utf-8") for name in ("player.css", "notes.css")
)
_play = st.components.v2.component(
    "mha_viz_talk",
    html='<div class="play"><button>Play the talk</button></div>',
    css=(_HERE / "play_button.css").read_text(encoding="utf-8"),
    js=component_code(_HERE / "play_button.js"),
)
COLOURS = ("page", "ink", "muted", "hairline", "control", "query")


def show(view: View) -> None:
    """The scenes of the talk, the button that plays it, and its file."""
    source = talk_file.source()
    current = talk.read(source)
    sizes = {view.source: (view.trace.n_layers, view.trace.n_heads)}
    about(
        "Talk", f"{escaped(current.title)} · {len(current.scenes)} scenes, {current.minutes:g} min"
    )
    left, right = st.columns([3, 2], gap="medium")
    with left:
        _player(view, current)
        _missing_models(current)
        _scenes(current)
    with right:
        _file(source, sizes)


def _player(view: View, current: talk.Talk) -> None:
    def left() -> None:
        scene = st.session_state["talk_player"].get("left")
        if isinstance(scene, int):
            st.session_state["talk_scene"] = scene

    _play(key="talk_player", data=_data(view, current), on_left_change=left)
    caption(
        "",
        "→ or a clicker's PageDown for the next press, ← to go back, E to explore a scene and "
        "return, N for notes, B for a black screen, Esc to leave.",
    )


def _missing_models(current: talk.Talk) -> None:
    """Says which models of the talk are not on this machine, while there is time to get them."""
    named = dict.fromkeys(scene.parameters.get("model", "bundled") for scene in current.scenes)
    missing = [
        name
        for name in named
        if name != "bundled" and not checkpoints.is_local(name) and not hub.is_cached(name)
    ]
    if missing:
        notice(
            f"Not on this machine: {', '.join(missing)}. Choose each one under Model and download "
            "it before the talk."
        )


def _data(view: View, current: talk.Talk) -> dict[str, Any]:
    """What the player needs: it opens each scene's address in a frame."""
    scenes = [
        asdict(scene) | {"address": scene.address, "about": _about(scene), "ask": list(scene.ask)}
        for scene in current.scenes
    ]
    palettes = {
        name: {colour: getattr(theme, colour) for colour in COLOURS}
        for name, theme in THEMES.items()
    }
    return {
        "title": current.title,
        "scenes": scenes,
        "plan": current.plan(),
        "palettes": palettes,
        "theme": view.theme.name,
        "css": _CSS,
        "notes_css": _NOTES_CSS,
    }


def _about(scene: talk.Scene) -> str:
    """The model of a scene, and its head if the link names one."""
    parameters = scene.parameters
    model = parameters.get("model", "bundled")
    named = [TITLES.get(model, model).split(" · ")[0], parameters.get("at", "")]
    return " · ".join(filter(None, named))


def _scenes(current: talk.Talk) -> None:
    rows = "".join(
        f"<li><b>{escaped(scene.title)}</b> <span>{escaped(scene.sentence)}</span></li>"
        for scene in current.scenes
    )
    st.html(f'<ol class="scenes">{rows}</ol>')


def _file(source: str, sizes: Mapping[str, talk.Size]) -> None:
    """The file: opened, edited, saved. A broken one leaves the talk as it was."""
    state = st.session_state
    opened = st.file_uploader("Open a talk", type="toml", key="talk_upload")
    if opened is not None:
        try:
            content = talk.decoded(opened.getvalue())
        except TalkError as error:
            problem(str(error))
        else:
            if state.get("talk_opened") != opened.file_id:
                state["talk_opened"], state["talk_draft"] = opened.file_id, content
                state.pop("talk_text", None)
    draft = explained.text_area(
        "Talk file", state.get("talk_draft") or source, key="talk_text", height=420
    )
    state["talk_draft"] = draft
    if draft != source:
        try:
            talk.read(draft, sizes)
        except TalkError as error:
            for line in str(error).splitlines():
                problem(line)
            caption("", "The talk stays as it was until the file is right.")
        else:
            talk_file.replace(draft)
            st.rerun()
    with st.container(horizontal=True):
        st.download_button(
            "Save", source, "my.talk.toml", "application/toml", on_click="ignore", key="talk_save"
        )
        st.button("Back to the talk that comes with the app", on_click=_reset)


def _reset() -> None:
    talk_file.replace(talk_file.bundled())
    talk_file.forget_draft()
