"""The Attention page: every head of every layer, and the selected head token by token."""

from functools import partial

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.chart import chart, load_plotly, steady
from mha_viz.app.widgets.token_strip import token_strip
from mha_viz.app.widgets.zoom import reset_zoom_button
from mha_viz.app.work import models
from mha_viz.export import Table
from mha_viz.figures.grid import head_grid, thumbnail_size
from mha_viz.figures.heatmap import head_heatmap
from mha_viz.figures.window import Window, whole
from mha_viz.heads import summary
from mha_viz.trace import Array

LEAST_READ_OUT = 0.005  # smaller weights would be read out as 0.00
N_READ_OUT = 3  # keys


def show(view: View) -> None:
    """The tokens, a thumbnail of every head, and the pattern of the selected head."""
    token_strip(view)
    left, right = st.columns(2, gap="small")
    with left:
        caption(
            "All heads", "Each thumbnail is one head's pattern.", " Rows: layers. Columns: heads."
        )
        _grid(view)
        _measures(view)
    with right:
        caption(view.at.label, "Each row shows what one token looks at", "; a row adds up to 1.")
        _pattern(view)
        reset_zoom_button(view)
        _explain_pooling(view)
    _how_to_read()


def _grid(view: View) -> None:
    """All heads of all layers; a click selects one."""
    trace = view.trace
    thumbnails = models.thumbnails(view.trace_key, thumbnail_size(trace.n_heads), trace)
    if thumbnails is None:
        load_plotly()  # the heatmap needs it
        return
    key = (view.trace_key, view.scale, view.dim_sink, view.stage, view.theme.name)
    with st.container(key="grid_box", height="stretch"):
        chart(
            _grid_figure(key, _view=view, _thumbnails=thumbnails),
            key="head_grid",
            height="stretch",
            # No word on the selected head, so that selecting another one sends nothing again.
            alt=f"Patterns of all heads: {trace.n_layers} layers, {trace.n_heads} heads per layer.",
            name="all-heads",
            table=partial(_grid_table, thumbnails),
        )


@st.cache_resource(max_entries=16, show_spinner=False)
def _grid_figure(key: tuple[str | bool, ...], *, _view: View, _thumbnails: Array) -> go.Figure:
    del key  # names the figure in the cache
    n_tokens, n_heads = _view.trace.n_tokens, _view.trace.n_heads
    return head_grid(
        _thumbnails,
        _view.theme,
        scale=_view.scale,
        block=-(-n_tokens // thumbnail_size(n_heads)),
        dim_sink=_view.dim_sink,
        sizes=_view.sizes,
    )


def _grid_table(thumbnails: Array) -> Table:
    """The weights in the thumbnails, pooled as drawn."""
    side = thumbnails.shape[-1]
    rows = [
        [layer, head, query, key, float(thumbnails[layer, head, query, key])]
        for layer, head in np.ndindex(thumbnails.shape[:2])
        for query in range(side)
        for key in range(query + 1)
    ]
    return ["layer", "head", "query block", "key block", "weight"], rows


def _measures(view: View) -> None:
    """What the selected head does on this text: four bars and its mean distance."""
    trace = view.trace
    if trace.n_layers > 0.6 * trace.n_heads + 1:
        return  # the grid fills the column
    if trace.n_tokens < 2:
        caption("", "Measures of a head need at least two tokens.")
        return
    measured = summary(_weights(view))
    bars = {
        "to the first token": measured.first_token,
        "to the previous token": measured.previous_token,
        "to itself": measured.itself,
        "entropy (0 = one key, 1 = uniform)": measured.entropy,
    }
    with st.container(key="measures"):
        caption(
            view.at.label,
            f"Means over queries 1 to {trace.n_tokens - 1} of this text; the head looks "
            f"{measured.distance:.1f} tokens back on average.",
            also=" ".join(bars),
        )
        st.html(f'<div class="measures">{"".join(map(_bar, bars, bars.values()))}</div>')


def _bar(name: str, value: float) -> str:
    return f'<span>{name}</span><i style="--w:{value:.3f}"></i><b>{value:.2f}</b>'


def _pattern(view: View) -> None:
    """The pattern of the selected head, or the part that is zoomed in on."""
    key = (view.trace_key, view.at.key, view.scale, view.dim_sink, view.stage, view.theme.name)
    figure = _pattern_figure(key, view.window, _view=view)
    with st.container(key="map_box", height="stretch"):
        steady(figure, key="head_map", alt=_alt(view))


@st.cache_resource(max_entries=32, show_spinner=False)
def _pattern_figure(
    key: tuple[str | bool, ...], window: Window | None, *, _view: View
) -> go.Figure:
    del key  # names the figure in the cache, with the window
    return head_heatmap(
        _weights(_view),
        _view.trace.tokens,
        _view.theme,
        window=window,
        scale=_view.scale,
        dim_sink=_view.dim_sink,
        sizes=_view.sizes,
    )


def _weights(view: View) -> Array:
    """`[T, T]`: the pattern of the selected head."""
    return models.pattern(view.trace_key, view.layer, view.head, view.trace)


def _alt(view: View) -> str:
    tokens, query = view.trace.tokens, view.token
    row = _weights(view)[query]
    strongest = [key for key in row.argsort()[::-1][:N_READ_OUT] if row[key] >= LEAST_READ_OUT]
    keys = ", ".join(f"{tokens[key]} ({key}) {row[key]:.2f}" for key in strongest)
    keys = keys or f"many tokens, none above {LEAST_READ_OUT}"
    return f"Pattern of {view.at.label}: {tokens[query]} ({query}) looks at {keys}."


def _explain_pooling(view: View) -> None:
    """What a cell of the heatmap shows when it stands for more than one pair of tokens."""
    n_tokens = view.trace.n_tokens
    block = (view.window or whole(n_tokens)).block
    if block > 1:
        explained.note(
            f"{n_tokens:,} tokens: each cell shows the largest weight in a {block} × {block} "
            "block. Drag over an area to zoom in."
        )


def _how_to_read() -> None:
    with st.container(key="how_to_read"):
        caption(
            "How to read this.",
            "Line just below the diagonal: previous-token head. Strong first column: attention "
            "sink. Diagonal further down in repeated text: usually an induction head, which looks "
            "at the token that followed the previous occurrence.",
        )
