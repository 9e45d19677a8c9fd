"""The revisions of a model on the Hub, such as the checkpoints of a training run, one by one."""

import streamlit as st

from mha_viz.app.messages import problem
from mha_viz.app.widgets import explained
from mha_viz.checkpoints import hub, is_local
from mha_viz.checkpoints.hub_names import HubName, parse
from mha_viz.errors import SourceError


def choose(source: str) -> None:
    """For a model on the Hub: lists its revisions when asked to, and steps through them."""
    if source == "bundled" or is_local(source):
        return
    try:
        at = parse(source)
    except SourceError:  # the page reports it when it loads the model
        return
    found = _known().get(at.repo)
    if found is None:
        st.button(
            "List revisions",
            on_click=_list,
            args=(at.repo,),
            key="list_revisions",
            type="tertiary",
            help="Asks the Hugging Face Hub for the branches and tags of this model, such as the "
            "checkpoints of its training run",
        )
        return
    names = found if at.revision in found else [at.revision, *found]
    place = names.index(at.revision)
    st.session_state["revision"] = at.revision
    with st.container(horizontal=True, vertical_alignment="bottom"):
        explained.selectbox(
            "Revision", names, key="revision", on_change=_take, args=(at.repo,), width="stretch"
        )
        for icon, other, key in (("back", place - 1, "previous"), ("forward", place + 1, "next")):
            inside = 0 <= other < len(names)
            st.button(
                "",
                icon=f":material/arrow_{icon}:",
                on_click=_open,
                args=(at.repo, names[other] if inside else ""),
                disabled=not inside,
                key=f"revision_{key}",
                help=f"{key.capitalize()} revision",
            )


def _known() -> dict[str, list[str]]:
    found: dict[str, list[str]] = st.session_state.setdefault("revisions", {})
    return found


def _list(repo: str) -> None:
    try:
        _known()[repo] = hub.revisions(repo)
    except SourceError as error:
        problem(str(error))


def _take(repo: str) -> None:
    _open(repo, st.session_state["revision"])


def _open(repo: str, revision: str) -> None:
    st.session_state["model"] = str(HubName(repo, revision))
