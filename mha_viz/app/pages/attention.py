"""What the Attention page is made of: cached figures, and the words above and below them."""

from functools import partial

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from mha_viz.app.view import View
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.chart import chart, load_plotly, steady
from mha_viz.app.widgets.token_strip import token_strip
from mha_viz.app.work import models
from mha_viz.export import Table
from mha_viz.figures.grid import head_grid, thumbnail_size
from mha_viz.figures.heatmap import head_heatmap
from mha_viz.figures.scale import Scale
from mha_viz.figures.theme import NORMAL, STAGE, THEMES
from mha_viz.figures.window import Window, whole
from mha_viz.heads import summary
from mha_viz.trace import Array, Trace

LEAST = 0.005  # a weight that two digits can tell from none


def show(view: View) -> None:
    """The text, all heads of all layers, and the chosen head token by token."""
    token_strip(view)
    left, right = st.columns(2, gap="small")
    with left:
        caption(
            "All heads",
            "layers down, heads across",
            "; each thumbnail is one head's triangle of weights.",
        )
        grid(view)
        measures(view)
    with right:
        caption(
            view.at.label,
            "a row asks, a column is read",
            "; each row adds up to 1.",
        )
        heatmap(view)
        zoomed(view)
    how_to_read()


def grid(view: View) -> None:
    """All heads of all layers; a click chooses one."""
    trace = view.trace
    pooled = models.thumbnails(view.trace_key, thumbnail_size(trace.n_heads), trace)
    if pooled is None:
        load_plotly()  # the heatmap needs it
        return
    figure = _grid_figure(
        view.trace_key, view.scale, view.dim_sink, view.stage, view.theme.name, _trace=trace,
        _pooled=pooled,
    )  # fmt: skip
    with st.container(key="grid_box", height="stretch"):
        chart(
            figure, key="head_grid", height="stretch",
            # The same for every head, so that a choice of another one sends nothing anew.
            alt=f"Patterns of {trace.n_layers} layers with {trace.n_heads} heads each.",
            name="all-heads", table=partial(_grid_table, pooled),
        )  # fmt: skip


def heatmap(view: View) -> None:
    """The chosen head, or the part of it that is zoomed in on."""
    figure = _map_figure(
        view.trace_key, view.layer, view.head, view.window,
        view.scale, view.dim_sink, view.stage, view.theme.name, _trace=view.trace,
    )  # fmt: skip
    with st.container(key="map_box", height="stretch"):
        steady(figure, key="head_map", alt=_alt(view))


def measures(view: View) -> None:
    """What the chosen head does on this text, in four bars and a number."""
    if view.trace.n_layers > 0.6 * view.trace.n_heads + 1:
        return  # the grid fills the column
    found = summary(_pattern(view))
    if view.trace.n_tokens < 2:
        caption("", "Measures of a head need at least two tokens.")
        return
    rows = [
        ("to the first token", found.first_token),
        ("to the previous token", found.previous_token),
        ("to itself", found.itself),
        ("spread (entropy)", found.entropy),
    ]
    bars = "".join(
        f'<span>{name}</span><i style="--w:{value:.3f}"></i><b>{value:.2f}</b>'
        for name, value in rows
    )
    with st.container(key="measures"):
        caption(
            view.at.label,
            f"on this text, mean over tokens 1 to {view.trace.n_tokens - 1}; it looks "
            f"{found.distance:.1f} tokens back on average.",
        )
        st.html(f'<div class="measures">{bars}</div>')


def how_to_read() -> None:
    """What the commonest shapes mean."""
    with st.container(key="how_to_read"):
        caption(
            "How to read this.",
            "A line just under the diagonal: the token before. A strong first column: the sink, "
            "where a head rests. A shifted diagonal: induction, what followed last time.",
        )


def zoomed(view: View) -> None:
    """Says what part is shown and how to come back, while the heatmap is zoomed or pooled."""
    window = view.window
    T = view.trace.n_tokens
    block = (window or whole(T)).block
    if window is not None:
        st.button("Whole pattern", on_click=_unzoom, icon=":material/zoom_out_map:", key="unzoom")
    if block > 1:
        st.caption(
            f"{T:,} tokens: each cell is the largest weight of {block} × {block} tokens. "
            "Drag over a part to see it token by token."
        )


def _unzoom() -> None:
    st.session_state["window"] = None
    st.session_state["focus_seq"] = st.session_state.get("focus_seq", 0) + 1


def _pattern(view: View) -> Array:
    return models.pattern(view.trace_key, view.layer, view.head, view.trace)


@st.cache_resource(max_entries=16, show_spinner=False)
def _grid_figure(
    trace_key: str, scale: Scale, dim_sink: bool, stage: bool, theme: str, *, _trace: Trace,
    _pooled: Array,
) -> go.Figure:  # fmt: skip
    return head_grid(
        _pooled,
        THEMES[theme],
        scale=scale,
        block=-(-_trace.n_tokens // thumbnail_size(_trace.n_heads)),
        dim_sink=dim_sink,
        sizes=STAGE if stage else NORMAL,
    )


def _grid_table(pooled: Array) -> Table:
    """The weights that the grid shows, pooled as they are there."""
    side = pooled.shape[-1]
    rows = [
        [layer, head, query, key, float(pooled[layer, head, query, key])]
        for layer, head in np.ndindex(pooled.shape[:2])
        for query in range(side)
        for key in range(query + 1)
    ]
    return ["layer", "head", "query block", "key block", "weight"], rows


@st.cache_resource(max_entries=32, show_spinner=False)
def _map_figure(
    trace_key: str,
    layer: int,
    head: int,
    window: Window | None,
    scale: Scale,
    dim_sink: bool,
    stage: bool,
    theme: str,
    *,
    _trace: Trace,
) -> go.Figure:
    return head_heatmap(
        models.pattern(trace_key, layer, head, _trace),
        _trace.tokens,
        THEMES[theme],
        window=window,
        scale=scale,
        dim_sink=dim_sink,
        sizes=STAGE if stage else NORMAL,
    )


def _alt(view: View) -> str:
    trace, query = view.trace, view.token
    row = _pattern(view)[query]
    best = row.argsort()[::-1][:3]
    looks = [f"{trace.tokens[k]} ({k}) {row[k]:.2f}" for k in best if row[k] >= LEAST]
    told = ", ".join(looks) or "every token a little"
    return f"Pattern of {view.at.label}: {trace.tokens[query]} ({query}) looks at {told}."
