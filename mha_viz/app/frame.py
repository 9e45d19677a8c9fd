"""What happens around every page: setup, inputs, style, and the view that the page draws.

Heavy modules are imported late: torch takes seconds, and meanwhile the browser can already load
what it needs for drawing.
"""

import threading
from typing import TYPE_CHECKING

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.navigation.page import StreamlitPage

from mha_viz.app import style

if TYPE_CHECKING:
    from mha_viz.app.view import View

OF_OTHER_MODELS = {"training"}  # pages that show no number of the model in the sidebar
_warm = threading.Event()  # set once the server has shown a page


def begin() -> DeltaGenerator:
    """Sets up the page; returns a placeholder, which shows a message while the server warms up."""
    stage = st.session_state.get("stage", st.query_params.get("stage") == "true")
    style.page_setup(stage=bool(stage))
    placeholder = st.empty()
    if not _warm.is_set():
        with placeholder.container():
            st.caption("Loading the bundled model, 4 layers × 6 heads…")
            from mha_viz.app.widgets.chart import load_plotly

            load_plotly()  # while the server loads torch
    return placeholder


def run(page: StreamlitPage, placeholder: DeltaGenerator) -> None:
    """Gathers the inputs and runs the page; skips it if there is nothing to draw yet."""
    from mha_viz.app import export_panel, inputs
    from mha_viz.app.widgets import chart
    from mha_viz.app.widgets.parity_line import parity_line
    from mha_viz.app.work import jobs

    view = inputs.view()
    placeholder.empty()
    if view is None:
        return
    theme = view.theme
    variables = {
        "ink": theme.ink,
        "muted": theme.muted,
        "query": theme.query,
        "track": theme.surface,
        "bar": theme.accent,
        "good": theme.good,
        "warn": theme.warn,
        "bad": theme.bad,
        "grid-ratio": f"{view.trace.n_heads} / {view.trace.n_layers + 0.4}",
    }
    style.rules(stage=view.stage, variables=variables)
    st.session_state["view"] = view
    jobs.keep_alive()
    chart.reset()
    page.run()
    export_panel.offer(view, page.title, alone=inputs.serves_this_machine_only())
    _warm.set()
    if page.url_path not in OF_OTHER_MODELS:
        parity_line(view)


def view() -> "View":
    """The view of the page that is running."""
    current: View = st.session_state["view"]
    return current
