"""What happens around every page: setup, inputs, style, and the hand-over of the view.

Nothing heavy is imported until a first visitor has something to look at: torch takes seconds, and
the browser can load what it needs to draw meanwhile.
"""

import threading
from typing import TYPE_CHECKING

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.navigation.page import StreamlitPage

from mha_viz.app import style

if TYPE_CHECKING:
    from mha_viz.app.view import View

_warm = threading.Event()  # a page has been shown since the server started


def begin() -> DeltaGenerator:
    """The first call of a run; the place that it returns says so while the server warms up."""
    stage = st.session_state.get("stage", st.query_params.get("stage") == "true")
    style.page_setup(stage=bool(stage))
    waiting = st.empty()
    if not _warm.is_set():
        with waiting.container():
            st.caption("Loading the bundled model, 4 layers × 6 heads…")
            from mha_viz.app.widgets.chart import load_plotly

            load_plotly()  # while the server loads torch
    return waiting


def run(page: StreamlitPage, waiting: DeltaGenerator) -> None:
    """Gathers the inputs and lets the page draw; without anything to draw, the page is skipped."""
    from mha_viz.app import export_panel, inputs
    from mha_viz.app.widgets import chart
    from mha_viz.app.work import jobs

    view = inputs.view()
    waiting.empty()
    if view is None:
        return
    theme = view.theme
    variables = {
        "ink": theme.ink,
        "muted": theme.muted,
        "query": theme.query,
        "track": theme.surface,
        "bar": theme.accent,
        "bad": theme.bad,
        "grid-ratio": f"{view.trace.n_heads} / {view.trace.n_layers + 0.4}",
    }
    style.rules(stage=view.stage, variables=variables)
    st.session_state["view"] = view
    jobs.keep_alive()
    chart.reset()
    page.run()
    export_panel.offer(view)
    _warm.set()


def view() -> "View":
    """What to show, for the page that runs now."""
    found: View = st.session_state["view"]
    return found
