"""Figures from a trace in one call, for notebooks; the app draws the same ones.

    from mha_viz.checkpoints import load
    from mha_viz.figures.notebook import all_heads, head_view, one_head
    one_head(load("gpt2").trace("When Mary and John went to the store"), 5, 1)
"""

from collections.abc import Sequence

import plotly.graph_objects as go

from mha_viz.analysis import dot_product
from mha_viz.figures import head_view as lines
from mha_viz.figures.grid import head_grid, thumbnail_size
from mha_viz.figures.heatmap import head_heatmap
from mha_viz.figures.scale import Scale
from mha_viz.figures.theme import THEMES
from mha_viz.figures.window import Window
from mha_viz.head import Head
from mha_viz.trace import Trace


def one_head(
    trace: Trace,
    layer: int,
    head: int,
    *,
    window: Window | None = None,
    scale: Scale = "sqrt",
    theme: str = "light",
    size: int = 640,
) -> go.Figure:
    """The pattern of one head as a heatmap of `size` pixels: rows look from, columns look at.

    Raises HeadNotFound for a head that is not there.
    """
    colours = THEMES[theme]
    figure = head_heatmap(
        trace.pattern(layer, head), trace.tokens, colours, window=window, scale=scale
    )
    return _framed(figure, f"{trace.model} {Head(layer, head).label}", size, size, colours.page)


def all_heads(
    trace: Trace, *, scale: Scale = "sqrt", theme: str = "light", size: int = 640
) -> go.Figure:
    """All heads of all layers in one picture, `size` pixels wide: layers down, heads across."""
    side = thumbnail_size(trace.n_heads)
    colours = THEMES[theme]
    figure = head_grid(
        trace.thumbnails(side), colours, scale=scale, block=-(-trace.n_tokens // side)
    )
    height = size * trace.n_layers // trace.n_heads
    return _framed(figure, f"{trace.model}, all heads", size, height, colours.page)


def head_view(
    trace: Trace,
    heads: Sequence[tuple[int, int]],
    *,
    most: int = 4,
    threshold: float = 0.05,
    upright: bool = True,
    theme: str = "light",
    size: int = 640,
) -> go.Figure:
    """Lines from each token to the `most` that it looks at, for several heads (layer, head).

    No line is drawn for a weight below the threshold. Raises HeadNotFound, and ShapeError for
    `most` below 1.
    """
    colours = THEMES[theme]
    found = [
        (Head(layer, head).label,
         dot_product.lines(trace.pattern(layer, head), most=most, threshold=threshold))
        for layer, head in heads
    ]  # fmt: skip
    figure = lines.head_view(found, trace.tokens, colours, upright=upright)
    return _framed(figure, f"{trace.model}, lines", size, figure.layout.height, colours.page)


def _framed(figure: go.Figure, title: str, width: int, height: int, page: str) -> go.Figure:
    """With a title above what the app writes beside it, on a page of its own."""
    margin = figure.layout.margin.to_plotly_json()
    top = margin["t"] + 36
    return figure.update_layout(
        title={"text": title, "x": 0.01, "y": 1 - 18 / (height + 36), "font": {"size": 16}},
        margin={**margin, "t": top}, width=width, height=height + 36,
        paper_bgcolor=page, plot_bgcolor=page,
    )  # fmt: skip
