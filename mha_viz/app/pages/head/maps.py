"""The pattern as the parts of the Head page draw it, and its numbers as a file."""

from collections.abc import Callable

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from mha_viz.app.view import View
from mha_viz.app.work import models
from mha_viz.export import matrix_csv
from mha_viz.figures.cells import cell_map
from mha_viz.figures.theme import NORMAL, STAGE, THEMES
from mha_viz.figures.window import Window, whole
from mha_viz.trace import Array, Trace

LABELS = 30  # a side of a map on half of the page


def seen_weights(view: View) -> Array:
    """`[T, T]`: the pattern, NaN beyond the query."""
    return only_seen(models.pattern(view.trace_key, view.layer, view.head, view.trace))


def only_seen(values: Array) -> Array:
    """The values `[T, T]` with NaN where a key lies beyond its query."""
    seen: Array = np.where(np.tri(len(values), dtype=np.bool_), values, np.float32(np.nan))
    return seen


def weight_map(view: View, *, labels: int = LABELS) -> go.Figure:
    """The pattern; colour is the square root of the weight."""
    return _map(
        view.trace_key, view.layer, view.head, view.window, labels, view.stage, view.theme.name,
        _trace=view.trace,
    )  # fmt: skip


@st.cache_resource(max_entries=16, show_spinner=False)
def _map(
    trace_key: str, layer: int, head: int, window: Window | None, labels: int, stage: bool,
    theme: str, *, _trace: Trace,
) -> go.Figure:  # fmt: skip
    return cell_map(
        only_seen(models.pattern(trace_key, layer, head, _trace)), _trace.tokens, THEMES[theme],
        colours="root", top=1.0, window=window, ticks=labels, sizes=STAGE if stage else NORMAL,
    )  # fmt: skip


def part_shown(view: View) -> None:
    """Says what part the maps show, and what a cell stands for, where that is not plain."""
    window = view.window
    seen = window or whole(view.trace.n_tokens)
    if window is not None:
        st.button("Whole pattern", on_click=_unzoom, icon=":material/zoom_out_map:", key="unzoom")
        st.caption(
            f"Shown are queries {window.first_query} to {window.end_query - 1} and keys "
            f"{window.first_key} to {window.end_key - 1}, as zoomed in on the Attention page."
        )
    if seen.block > 1:
        st.caption(
            f"{view.trace.n_tokens:,} tokens: a cell shows the largest of {seen.block} × "
            f"{seen.block} pairs (of scores, in size). Press one to choose that pair, or zoom in "
            "on the Attention page."
        )


def _unzoom() -> None:
    state = st.session_state
    state["window"] = None
    state["focus_seq"] = state.get("focus_seq", 0) + 1


def save(label: str, name: str, values: Callable[[], Array], view: View) -> None:
    """A button that saves a map's numbers, a row a query; the file is made when it is asked for."""
    st.download_button(
        label, lambda: matrix_csv(values(), view.trace.tokens), name, "text/csv",
        key=f"csv_{name}", on_click="ignore", icon=":material/download:",
    )  # fmt: skip
