"""Every chart of a page: drawn without Plotly's bar, told in words, and there to be taken away."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import streamlit as st
from plotly.io.json import to_json_plotly

from mha_viz.app.browser import component_code
from mha_viz.export import Picture, Table

CONFIG = {"displayModeBar": False, "doubleClick": False, "scrollZoom": False, "showTips": False}
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
    **how: Any,
) -> None:
    """Draws the figure under a key, with `alt` for those who do not see it.

    `name` is what files are called, the key unless given; `table` makes the numbers where the
    figure does not carry them.
    """
    pictures()[key] = Picture(name or key, figure, alt, table)
    st.plotly_chart(figure, key=key, alt=alt, theme=None, config=CONFIG, **how)


def load_plotly() -> None:
    """An empty figure, which makes the browser load Plotly."""
    hidden = {"visible": False}
    layout = {"xaxis": hidden, "yaxis": hidden}
    st.plotly_chart({"data": [{"type": "heatmap"}], "layout": layout}, key="cold")


def steady(figure: go.Figure, *, key: str, alt: str) -> None:
    """A chart that stays on the page while its figure changes, as high as the place it is in.

    The page needs another chart, of `chart`, which brings Plotly along. What only Plotly's own
    hover would show is not sent: such a chart has a tooltip of the page's.
    """
    pictures()[key] = Picture(key, figure, alt)
    with st.container(key=key, height="stretch"):
        _steady(
            key=f"steady {key}", height="stretch",
            data={"spec": without_hover(figure), "alt": alt, "config": CONFIG},
        )  # fmt: skip


def without_hover(figure: go.Figure) -> str:
    """The figure's JSON without what only a hover of Plotly's would show."""
    sent = figure.to_plotly_json()
    for trace in sent["data"]:
        trace.pop("customdata", None)
    return str(to_json_plotly(sent))


def export_only(
    make: Callable[[], go.Figure], *, key: str, alt: str, table: Callable[[], Table]
) -> None:
    """What a component draws by itself, as a figure to take away; made only where that is open."""
    if st.session_state.get("export"):
        pictures()[key] = Picture(key, make(), alt, table, plotted=False)


def square(figure: go.Figure, key: str, alt: str) -> None:
    """A figure as high as it is wide, on a screen of any width."""
    with st.container(key=f"square_{key}", height="stretch"):
        chart(figure, key=key, alt=alt, height="stretch")


def record_source(text: str, facts: Mapping[str, object]) -> None:
    """Says what made the figures, where it is not the model and the text of the sidebar."""
    st.session_state["recorded_source"] = (text, dict(facts))


def record_settings(**facts: object) -> None:
    """Says what else decides the figures of this run; a capsule names it."""
    st.session_state.setdefault("recorded_settings", {}).update(
        {name.replace("_", " "): fact for name, fact in facts.items()}
    )


def recorded_settings() -> dict[str, object]:
    """What `record_settings` was told in this run."""
    found: dict[str, object] = st.session_state.get("recorded_settings", {})
    return found


def recorded_source() -> tuple[str, dict[str, object]] | None:
    """The text and the facts that `record_source` was told in this run, if any."""
    found: tuple[str, dict[str, object]] | None = st.session_state.get("recorded_source")
    return found


def reset() -> None:
    """Forgets the charts of the run before."""
    st.session_state["pictures"] = {}
    st.session_state["recorded_source"] = None
    st.session_state["recorded_settings"] = {}


def pictures() -> dict[str, Picture]:
    """The charts of this run by their keys."""
    found: dict[str, Picture] = st.session_state.setdefault("pictures", {})
    return found
