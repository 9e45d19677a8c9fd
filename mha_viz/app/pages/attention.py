"""The Attention page: every head of every layer, and the selected head token by token."""

import streamlit as st

from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.caption import caption, selected_head
from mha_viz.app.widgets.chart import cached_figure, chart, load_plotly, steady
from mha_viz.app.widgets.heads_that_matter import heads_that_matter
from mha_viz.app.widgets.recipes import recipe
from mha_viz.app.widgets.token_strip import token_strip
from mha_viz.app.widgets.token_strip.every_pattern import every_pattern
from mha_viz.app.widgets.zoom import reset_zoom_button
from mha_viz.app.work import models
from mha_viz.export import Drawn, Given, pattern_data, patterns_data
from mha_viz.figures.grid import grid_ratio, head_grid, thumbnail_size
from mha_viz.figures.heatmap import head_heatmap
from mha_viz.figures.scale import Scale
from mha_viz.figures.theme import TextSizes, Theme
from mha_viz.figures.window import Window, whole
from mha_viz.trace import Array, Trace

MIN_READ_OUT = 0.005  # smaller weights would be read out as 0.00
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
        # On a stage, the numbers on the grid are enough.
        matter = st.container(key="unseen matter" if view.stage else "matter_box")
    with right:
        what = "Each row shows what one token looks at"
        # Without its names, which may be long and would wrap here; the title has them.
        caption("", f"{selected_head(view)} {what}", "; a row adds up to 1.")
        _pattern(view)
        reset_zoom_button(view)
        _explain_pooling(view)
    every_pattern(view)
    with matter:  # last, so that no picture waits for it
        heads_that_matter(view)


def _grid(view: View) -> None:
    """All heads of all layers; a click selects one."""
    trace = view.trace
    size, relative = thumbnail_size(trace.n_heads), view.scale == "share"
    weights = models.thumbnails(view.trace_key, size, trace)
    drawn_values = (
        models.thumbnails(view.trace_key, size, trace, relative=True) if relative else weights
    )
    if weights is None or drawn_values is None:
        load_plotly()  # the heatmap needs it
        return
    code = "trace.thumbnails(thumbnail_size(trace.n_heads){})"
    drawn = recipe(
        view,
        _draw_grid,
        weights=Given(weights, code.format("")),
        thumbnails=Given(drawn_values, code.format(", relative=True" if relative else "")),
    )
    key = ("grid", view.trace_key, view.scale, view.dim_sink, view.stage, view.theme.name)
    with st.container(key="grid_box", height="stretch"):
        chart(
            drawn,
            figure=cached_figure(key, drawn),
            key="head_grid",
            height="stretch",
            ratio=grid_ratio(trace.n_layers, trace.n_heads),
            # Does not mention the selected head, so that selecting another sends nothing again.
            alt=f"Patterns of all heads: {trace.n_layers} layers, {trace.n_heads} heads per layer.",
            name="All heads",
        )


def _draw_grid(
    trace: Trace,
    weights: Array,
    thumbnails: Array,
    scale: Scale,
    dim_sink: bool,
    theme: Theme,
    sizes: TextSizes,
) -> Drawn:
    block = -(-trace.n_tokens // thumbnail_size(trace.n_heads))
    figure = head_grid(thumbnails, theme, scale=scale, dim_sink=dim_sink, sizes=sizes)
    data = patterns_data(weights, trace.tokens, block=block, token_ids=trace.token_ids)
    return figure, data


def _pattern(view: View) -> None:
    """The pattern of the selected head, or the part that is zoomed in on."""
    drawn = recipe(view, _draw_pattern, pattern=Given(_weights(view), "trace.pattern(layer, head)"))
    how = (view.window, view.scale, view.dim_sink, view.stage, view.theme.name)
    figure = cached_figure(("pattern", view.trace_key, view.at.key, *how), drawn)
    with st.container(key="map_box", height="stretch"):
        steady(
            drawn,
            figure,
            key="head_map",
            alt=_alt(view),
            name=f"Pattern of {view.at.label}",
            shows=view.at.key,
        )


def _draw_pattern(
    trace: Trace,
    pattern: Array,
    layer: int,
    head: int,
    window: Window | None,
    scale: Scale,
    dim_sink: bool,
    theme: Theme,
    sizes: TextSizes,
) -> Drawn:
    figure = head_heatmap(
        pattern,
        trace.tokens,
        theme,
        window=window,
        scale=scale,
        dim_sink=dim_sink,
        sizes=sizes,
    )
    data = pattern_data(pattern, trace.tokens, token_ids=trace.token_ids, layer=layer, head=head)
    return figure, data


def _weights(view: View) -> Array:
    """`[T, T]`: the pattern of the selected head."""
    return models.pattern(view.trace_key, view.layer, view.head, view.trace)


def _alt(view: View) -> str:
    tokens, query = view.trace.tokens, view.token
    row = _weights(view)[query]
    strongest = [key for key in row.argsort()[::-1][:N_READ_OUT] if row[key] >= MIN_READ_OUT]
    keys = ", ".join(f"{tokens[key]} ({key}) {row[key]:.2f}" for key in strongest)
    keys = keys or f"many tokens, none above {MIN_READ_OUT}"
    return f"Pattern of {view.at.label}: {tokens[query]} ({query}) looks at {keys}."


def _explain_pooling(view: View) -> None:
    """What a cell of the heatmap shows when it stands for more than one pair of tokens."""
    n_tokens = view.trace.n_tokens
    block = (view.window or whole(n_tokens)).block
    if block > 1:
        relative = " relative to uniform" if view.scale == "share" else ""
        explained.note(
            f"{n_tokens:,} tokens: each cell shows the largest weight{relative} in a {block} × "
            f"{block} block. Drag over an area to zoom in."
        )
