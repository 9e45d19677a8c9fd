"""What happens around every page: setup, inputs, style, and the hand-over of the view."""

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from mha_viz.session import inputs, style
from mha_viz.session.view import View


def begin() -> None:
    """The first call of a run."""
    stage = st.session_state.get("stage", st.query_params.get("stage") == "true")
    style.page_setup(stage=bool(stage))


def run(page: StreamlitPage) -> None:
    """Gathers the inputs and lets the page draw; without anything to draw, the page is skipped."""
    view = inputs.view()
    if view is None:
        return
    theme = view.theme
    variables = {
        "ink": theme.ink,
        "muted": theme.muted,
        "query": theme.query,
        "track": theme.surface,
        "bar": theme.accent,
        "grid-ratio": f"{view.trace.n_heads} / {view.trace.n_layers + 0.4}",
    }
    style.rules(stage=view.stage, variables=variables)
    st.session_state["view"] = view
    page.run()


def view() -> View:
    """What to show, for the page that runs now."""
    found: View = st.session_state["view"]
    return found
