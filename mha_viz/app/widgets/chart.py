"""Charts: each has a text alternative, no Plotly toolbar, and an entry in the export panel."""

from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import streamlit as st
from plotly.io.json import to_json_plotly

from mha_viz.app.browser import component_code, run_script
from mha_viz.export import Picture, Recipe

DEFAULT_HEIGHT = 400  # pixels, where a chart's container decides
CONFIG = {"displayModeBar": False, "doubleClick": False, "scrollZoom": False, "showTips": False}
_CLICKS = Path(__file__).parent / "clicks.js"
_steady = st.components.v2.component(
    "mha_viz_steady",
    html='<div class="steady" role="figure"></div>',
    js=component_code(Path(__file__).parent / "steady.js"),
    isolate_styles=False,
)


def chart(
    recipe: Recipe,
    *,
    key: str,
    alt: str,
    name: str,
    figure: go.Figure | None = None,
    ratio: float | None = None,
    min_width: int = 0,
    **options: Any,
) -> None:
    """Draws the figure of a recipe; `alt` describes it for people who cannot see it.

    `name` is its title in the export panel and in files. `figure` is what the recipe makes, if the
    page has it already; `ratio` is its width over its height, and `min_width` (pixels) decides when
    it scrolls sideways in an exported page. The options are those of `st.plotly_chart`.
    """
    drawn = recipe.make()[0] if figure is None else figure
    height = options.get("height")
    pixels = height if isinstance(height, int) else DEFAULT_HEIGHT
    pictures()[key] = Picture(name, drawn, recipe, alt, ratio, pixels, min_width)
    _take_caption()
    st.plotly_chart(drawn, key=key, alt=alt, theme=None, config=CONFIG, **options)


@st.cache_resource(max_entries=96, show_spinner=False)
def cached_figure(key: Hashable, _recipe: Recipe) -> go.Figure:
    """The figure of a recipe; `key` names it in the cache."""
    del key
    return _recipe.make()[0]


def load_plotly() -> None:
    """An empty figure that makes the browser load Plotly."""
    hidden = {"visible": False}
    layout = {"xaxis": hidden, "yaxis": hidden}
    st.plotly_chart({"data": [{"type": "heatmap"}], "layout": layout}, key="cold")


def steady(recipe: Recipe, figure: go.Figure, *, key: str, alt: str, name: str, shows: str) -> None:
    """A chart that stays on the page while its figure changes, as high as its container.

    `shows` names what is drawn. The browser may be ahead of the server: a figure of something else
    than what it shows by then is not drawn.

    It needs a `chart` on the same page, which loads Plotly. Data for Plotly's own hover is not
    sent, because the page draws its own tooltip.
    """
    pictures()[key] = Picture(name, figure, recipe, alt, ratio=1)
    _take_caption()
    with st.container(key=key, height="stretch"):
        data = {"spec": without_hover(figure), "shows": shows, "alt": alt, "config": CONFIG}
        _steady(key=f"steady {key}", height="stretch", data=data)


def without_hover(figure: go.Figure) -> str:
    """The figure as JSON, without the data that only Plotly's own hover shows."""
    sent = figure.to_plotly_json()
    for trace in sent["data"]:
        trace.pop("customdata", None)
    return str(to_json_plotly(sent))


def export_only(
    recipe: Recipe, *, key: str, alt: str, name: str, ratio: float | None = None
) -> None:
    """Adds what a component draws to the export panel, as a figure made while it is open."""
    if st.session_state.get("export"):
        figure = recipe.make()[0]
        pictures()[key] = Picture(name, figure, recipe, alt, ratio, plotted=False)


def square(recipe: Recipe, *, key: str, **options: Any) -> None:
    """A figure as high as it is wide, on any screen; the other arguments are those of `chart`."""
    with st.container(key=f"square_{key}", height="stretch"):
        chart(recipe, key=key, height="stretch", ratio=1, **options)


def proportioned(recipe: Recipe, ratio: float, *, key: str, **options: Any) -> None:
    """A figure that keeps its `ratio` of width to height on any screen.

    The other arguments are those of `chart`.
    """
    st.html(f"<style>.st-key-{key}_box {{ aspect-ratio: {ratio:.4f}; }}</style>")
    with st.container(key=f"{key}_box", height="stretch"):
        chart(recipe, key=key, height="stretch", ratio=ratio, **options)


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
    """Forgets the charts and records of the previous run; sends clicks.js to the browser."""
    run_script(_CLICKS)
    st.session_state["captions"], st.session_state["captions_of_figures"] = [], []
    st.session_state["pictures"] = {}
    st.session_state["recorded_source"] = None
    st.session_state["recorded_settings"] = {}


def captions_of_figures() -> list[tuple[str, str]]:
    """The captions of this run that stand over its figures, as plain text, each with its title."""
    found: list[tuple[str, str]] = st.session_state.setdefault("captions_of_figures", [])
    return found


def _take_caption() -> None:
    if captions := st.session_state.get("captions"):
        captions_of_figures().append(captions[-1])


def pictures() -> dict[str, Picture]:
    """The charts of this run, by key."""
    found: dict[str, Picture] = st.session_state.setdefault("pictures", {})
    return found
