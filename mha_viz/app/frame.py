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

OF_OTHER_MODELS = {"training", "talk"}  # pages that show no number of the model in the sidebar
_warm = threading.Event()  # set once the server has shown a page


def begin() -> DeltaGenerator:
    """Sets up the page; returns a placeholder, which shows a message while the server warms up."""
    state = st.session_state
    stage = state.get("stage", st.query_params.get("stage") == "true")
    for name in ("scene", "from_talk"):  # set by the player of a talk
        state.setdefault(name, st.query_params.get(name) == "true")
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
    from mha_viz.app.widgets import chart, talk_file
    from mha_viz.app.widgets.parity_line import parity_line
    from mha_viz.app.work import head_names, jobs
    from mha_viz.figures.grid import grid_ratio

    name = page.url_path or "attention"
    view = inputs.view(name)
    placeholder.empty()
    if view is None:
        return
    theme = view.theme
    variables = {
        "ink": theme.ink,
        "muted": theme.muted,
        "query": theme.query,
        "query-fill": theme.query_fill,
        "track": theme.surface,
        "bar": theme.accent,
        "good": theme.good,
        "warn": theme.warn,
        "bad": theme.bad,
        "grid-ratio": f"{grid_ratio(view.trace.n_layers, view.trace.n_heads):.4f}",
    }
    in_talk = st.session_state["scene"]
    style.rules(stage=view.stage, scene=in_talk, variables=variables)
    st.session_state["view"] = view
    jobs.keep_alive()
    chart.reset()
    page.run()
    _warm.set()
    if in_talk:
        return
    if name != "talk":
        export_panel.offer(view, page.title, alone=inputs.serves_this_machine_only())
        if not st.session_state["from_talk"]:
            talk_file.add_to_talk(view, name, page.title)
    if name not in OF_OTHER_MODELS:
        parity_line(view)
        head_names.measure(view.model)


def view() -> "View":
    """The view of the page that is running."""
    current: View = st.session_state["view"]
    return current
