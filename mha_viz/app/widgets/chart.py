"""Charts: each has a text alternative, no Plotly toolbar, and an entry in the export panel."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import streamlit as st
from plotly.io.json import to_json_plotly

from mha_viz.app.browser import component_code, run_script
from mha_viz.export import Picture, Table

CONFIG = {"displayModeBar": False, "doubleClick": False, "scrollZoom": False, "showTips": False}
_CLICKS = Path(__file__).parent / "clicks.js"
_steady = st.components.v2.component(
    "mha_viz_steady",
    html='<div class="steady" role="figure"></div>',
    js=component_code(Path(__file__).parent / "steady.js"),
    isolate_styles=False,
)


def chart(
    figure: go.Figure,
    *,
    key: str,
    alt: str,
    name: str = "",
    table: Callable[[], Table] | None = None,
    **options: Any,
) -> None:
    """Draws the figure; `alt` describes it for people who cannot see it.

    `name` is for exported files, by default the key; `table` makes the exported table, if the
    figure does not hold the data itself. Streamlit takes the options.
    """
    pictures()[key] = Picture(name or key, figure, alt, table)
    st.plotly_chart(figure, key=key, alt=alt, theme=None, config=CONFIG, **options)


def load_plotly() -> None:
    """An empty figure that makes the browser load Plotly."""
    hidden = {"visible": False}
    layout = {"xaxis": hidden, "yaxis": hidden}
    st.plotly_chart({"data": [{"type": "heatmap"}], "layout": layout}, key="cold")


def steady(figure: go.Figure, *, key: str, alt: str) -> None:
    """A chart that stays on the page while its figure changes, as high as its container.

    It needs a `chart` on the same page, which loads Plotly. Data for Plotly's own hover is not
    sent, since such a chart has a tooltip of the page.
    """
    pictures()[key] = Picture(key, figure, alt)
    with st.container(key=key, height="stretch"):
        data = {"spec": without_hover(figure), "alt": alt, "config": CONFIG}
        _steady(key=f"steady {key}", height="stretch", data=data)


def without_hover(figure: go.Figure) -> str:
    """The figure as JSON, without the data that only Plotly's own hover shows."""
    sent = figure.to_plotly_json()
    for trace in sent["data"]:
        trace.pop("customdata", None)
    return str(to_json_plotly(sent))


def export_only(
    make: Callable[[], go.Figure], *, key: str, alt: str, table: Callable[[], Table]
) -> None:
    """Adds a figure to the export panel for what a component draws; made only if that is open."""
    if st.session_state.get("export"):
        pictures()[key] = Picture(key, make(), alt, table, plotted=False)


def square(figure: go.Figure, key: str, alt: str) -> None:
    """A figure as high as it is wide, on any screen."""
    with st.container(key=f"square_{key}", height="stretch"):
        chart(figure, key=key, alt=alt, height="stretch")


def proportioned(figure: go.Figure, ratio: str, *, key: str, **options: Any) -> None:
    """A figure that keeps its `ratio` of width to height ("16 / 9") on any screen.

    The other arguments are those of `chart`.
    """
    st.html(f"<style>.st-key-{key}_box {{ aspect-ratio: {ratio}; }}</style>")
    with st.container(key=f"{key}_box", height="stretch"):
        chart(figure, key=key, height="stretch", **options)


def record_source(text: str, facts: Mapping[str, object]) -> None:
    """Records what the figures of this run show, if not the sidebar's model and text."""
    st.session_state["recorded_source"] = (text, dict(facts))


def record_settings(**facts: object) -> None:
    """Records what else decides the figures of this run; exported pages list it."""
    st.session_state.setdefault("recorded_settings", {}).update(
        {name.replace("_", " "): fact for name, fact in facts.items()}
    )


def recorded_settings() -> dict[str, object]:
    """The settings recorded in this run."""
    found: dict[str, object] = st.session_state.get("recorded_settings", {})
    return found


def recorded_source() -> tuple[str, dict[str, object]] | None:
    """The text and the facts recorded in this run, if any."""
    found: tuple[str, dict[str, object]] | None = st.session_state.get("recorded_source")
    return found


def reset() -> None:
    """Forgets the charts and records of the previous run; the browser hears every click."""
    run_script(_CLICKS)
    st.session_state["pictures"] = {}
    st.session_state["recorded_source"] = None
    st.session_state["recorded_settings"] = {}


def pictures() -> dict[str, Picture]:
    """The charts of this run, by key."""
    found: dict[str, Picture] = st.session_state.setdefault("pictures", {})
    return found
