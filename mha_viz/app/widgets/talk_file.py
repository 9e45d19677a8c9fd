"""The talk of a session: its file, and the button that adds the current view to it."""

from functools import cache
from textwrap import shorten
from urllib.parse import urlencode

import streamlit as st

from mha_viz import talk
from mha_viz.app.messages import problem
from mha_viz.app.samples import DEFAULT
from mha_viz.app.view import View
from mha_viz.app.widgets import chart
from mha_viz.app.widgets.caption import captions
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
    st.session_state.pop("talk_added", None)


def forget_draft() -> None:
    """Lets the Talk page show the talk's file again, and not what was typed there."""
    for name in ("talk_draft", "talk_text"):
        st.session_state.pop(name, None)


def add_to_talk(view: View, page: str, title: str) -> None:
    """A button in the sidebar: the current view becomes a scene after the last one shown.

    Its title and sentence are the name and the caption of a figure; both can be edited at once.
    """
    state = st.session_state
    with st.sidebar:
        if st.button("Add to talk", key="add_to_talk", width="stretch"):
            _add(view, page, title)
        if "talk_added" in state:
            _added()


def _add(view: View, page: str, title: str) -> None:
    state, before = st.session_state, source()
    if state.get("talk_draft", before) != before:
        problem("The talk's file has an error. Correct it on the Talk page, then add this view.")
        return
    name, sentence = _draft(view, title)
    scene = talk.Scene(name, sentence, link_of(page), text=_text(view))
    scenes = talk.read(before).scenes
    after = min(state.get("talk_scene", len(scenes) - 1) + 1, len(scenes))
    try:
        replace(talk.add(before, scene, after))
    except TalkError as error:
        problem(str(error))
    else:
        forget_draft()
        state["talk_scene"], state["talk_added"] = after, (after, before)
        state["added_title"], state["added_sentence"] = name, sentence


def _added() -> None:
    """What can follow at once: other words, a step back, the talk."""
    state = st.session_state
    number, _ = state["talk_added"]
    scene = talk.read(source()).scenes[number]
    st.success(f"Added as scene {number + 1}.")
    with st.popover("Edit title and sentence", width="stretch"):
        state.setdefault("added_title", scene.title)  # back from another page
        state.setdefault("added_sentence", scene.sentence)
        limits = {"Title": talk.LONGEST_TITLE, "Sentence": talk.LONGEST_SENTENCE}
        for label, most in limits.items():
            st.text_input(label, key=f"added_{label.lower()}", max_chars=most, on_change=_reword)
    left, right = st.columns(2, vertical_alignment="center")
    left.button("Undo", on_click=_undo, width="stretch", help=f"Remove scene {number + 1} again")
    right.page_link("talk.py", label="Open talk")


def _reword() -> None:
    state = st.session_state
    title, sentence = state["added_title"].strip(), state["added_sentence"].strip()
    if title and sentence:
        number, before = state["talk_added"]
        replace(talk.reword(source(), number, title, sentence))
        state["talk_added"] = number, before
        forget_draft()


def _undo() -> None:
    number, before = st.session_state["talk_added"]
    replace(before)
    forget_draft()
    st.session_state["talk_scene"] = number - 1


def _draft(view: View, page: str) -> tuple[str, str]:
    """A title and a sentence for a scene: those of a figure, by preference of the selected head."""
    label = view.at.label
    drawn = chart.captions_of_figures() or captions()
    found = sorted(drawn, key=lambda one: label not in f"{one[0]} {one[1]}")
    title, sentence = found[0] if found else ("", "")
    sentence = sentence.rpartition(label)[2].strip() if not title else sentence
    return (
        shorten(title or f"{page}: {label}", talk.LONGEST_TITLE, placeholder="…"),
        shorten(sentence or f"{page}, {label} selected.", talk.LONGEST_SENTENCE, placeholder="…"),
    )


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
