"""The talk of a session: its file, and the button that adds the current view to it."""

from functools import cache
from urllib.parse import urlencode

import streamlit as st

from mha_viz import talk
from mha_viz.app.messages import problem
from mha_viz.app.samples import DEFAULT
from mha_viz.app.view import View
from mha_viz.assets import ASSETS
from mha_viz.errors import TalkError

NOT_IN_LINKS = {"stage", "export", "text", "scene", "embed", "embed_options", "from_talk"}


@cache
def bundled() -> str:
    """The file of the talk that comes with the app."""
    return (ASSETS / "talks" / "heads.talk.toml").read_text(encoding="utf-8")


def source() -> str:
    """The file of this session's talk, which `talk.read` accepts."""
    return str(st.session_state.get("talk") or bundled())


def replace(content: str) -> None:
    """Makes a file that `talk.read` accepts the talk of this session."""
    st.session_state["talk"] = content


def add_to_talk(view: View, page: str, title: str) -> None:
    """A button in the sidebar: the current view becomes a scene after the last one shown."""
    state = st.session_state
    with st.sidebar, st.popover("Add to talk", width="stretch"):
        named = st.text_input("Title", f"{title}: {view.at.label}", key=f"scene_title {page}")
        sentence = st.text_input(
            "Sentence", key=f"scene_sentence {page}", placeholder="What is seen"
        )
        if st.button("Add", key=f"scene_add {page}"):
            scene = talk.Scene(named, sentence, link_of(page), text=_text(view))
            after = state.get("talk_scene", len(talk.read(source()).scenes) - 1) + 1
            try:
                replace(talk.add(source(), scene, after))
            except TalkError as error:
                problem(str(error).partition(": ")[2] or str(error))
            else:
                state["talk_scene"] = after
                state.pop("talk_draft", None)
                state.pop("talk_text", None)
                st.success(f"Added as scene {after + 1}.")
        st.page_link("talk.py", label="Open the talk")


def link_of(page: str) -> str:
    """The page with the parameters of its address, without the text."""
    kept = [
        (name, value)
        for name in st.query_params
        if name not in NOT_IN_LINKS
        for value in st.query_params.get_all(name)
    ]
    return f"{page}?{urlencode(kept)}" if kept else page


def _text(view: View) -> str:
    return "" if view.trace.text == DEFAULT else view.trace.text
