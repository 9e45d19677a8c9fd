"""Maps of all queries and keys, as the tabs of the Head page draw, explain and download them."""

from collections.abc import Callable, Hashable

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.download_buttons import download_csv
from mha_viz.app.widgets.zoom import reset_zoom_button
from mha_viz.app.work import models
from mha_viz.export import matrix_csv
from mha_viz.figures.cells import Colours, cell_map
from mha_viz.figures.window import whole
from mha_viz.trace import Array

HALF_PAGE_TICKS = 30  # labels per axis of a map that is half as wide as the page


def masked(values: Array) -> Array:
    """The values `[T, T]` with NaN where the key comes after the query."""
    out: Array = np.where(np.tri(len(values), dtype=np.bool_), values, np.float32(np.nan))
    return out


def masked_pattern(view: View) -> Array:
    """`[T, T]`: the pattern of the selected head, NaN where the key comes after the query."""
    return masked(models.pattern(view.trace_key, view.layer, view.head, view.trace))


def map_figure(
    view: View,
    name: str,
    values: Array,
    *,
    colours: Colours = "root",
    top: float = 1.0,
    ticks: int = HALF_PAGE_TICKS,
) -> go.Figure:
    """The values `[T, T]` of the selected head, zoomed as on the Attention page.

    The figure is cached under its `name`, which stands for values, colours and top.
    """
    key = (name, ticks, view.trace_key, view.at.key, view.window, view.stage, view.theme.name)
    return _map_figure(key, _view=view, _values=values, _colours=colours, _top=top, _ticks=ticks)


@st.cache_resource(max_entries=48, show_spinner=False)
def _map_figure(
    key: Hashable, *, _view: View, _values: Array, _colours: Colours, _top: float, _ticks: int
) -> go.Figure:
    del key  # names the figure in the cache
    return cell_map(
        _values,
        _view.trace.tokens,
        _view.theme,
        colours=_colours,
        top=_top,
        window=_view.window,
        ticks=_ticks,
        sizes=_view.sizes,
    )


def explain_maps(view: View) -> None:
    """Says which area the maps show and what a cell stands for, if it is not one pair of tokens."""
    window, n_tokens = view.window, view.trace.n_tokens
    block = (window or whole(n_tokens)).block
    reset_zoom_button(view)
    if window is not None:
        explained.note(
            f"Showing queries {window.first_query} to {window.end_query - 1} and keys "
            f"{window.first_key} to {window.end_key - 1}, as zoomed on the Attention page."
        )
    if block > 1:
        explained.note(
            f"{n_tokens:,} tokens: each cell shows the largest value (for scores, the largest "
            f"magnitude) in a {block} × {block} block. Click a cell to select that pair, or zoom "
            "in on the Attention page."
        )


def download_map(view: View, label: str, name: str, values: Callable[[], Array]) -> None:
    """A button that downloads the values of a map as NAME.csv, one row per query."""
    file = f"{view.at.key}_{name}.csv"
    download_csv(label, file, lambda: matrix_csv(values(), view.trace.tokens))
