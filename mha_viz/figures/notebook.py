"""Figures from a trace in one call, for notebooks; the app draws the same ones.

from mha_viz.checkpoints import load
from mha_viz.figures.notebook import all_heads, head_view, one_head
one_head(load("gpt2").trace("When Mary and John went to the store"), 5, 1)
"""

from collections.abc import Sequence

import plotly.graph_objects as go

from mha_viz.analysis.dot_product import lines
from mha_viz.figures import head_view as view
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
    """The pattern of one head as a heatmap of `size` pixels: rows are queries, columns are keys.

    Raises HeadNotFound if the model has no such head.
    """
    colours, pattern = THEMES[theme], trace.pattern(layer, head)
    figure = head_heatmap(pattern, trace.tokens, colours, window=window, scale=scale)
    return _titled(figure, f"{trace.model} {Head(layer, head).label}", size, size, colours.page)


def all_heads(
    trace: Trace, *, scale: Scale = "sqrt", theme: str = "light", size: int = 640
) -> go.Figure:
    """All heads of all layers in one picture, `size` pixels wide: layers down, heads across."""
    colours, side = THEMES[theme], thumbnail_size(trace.n_heads)
    thumbnails = trace.thumbnails(side, relative=scale == "share")
    figure = head_grid(thumbnails, colours, scale=scale)
    height = size * trace.n_layers // trace.n_heads
    return _titled(figure, f"{trace.model}, all heads", size, height, colours.page)


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
    """Lines from each token to the `most` tokens that each head (layer, head) looks at.

    Weights below the threshold have no line. Raises HeadNotFound if the model has no such head,
    and ShapeError for `most` below 1.
    """
    colours = THEMES[theme]
    patterns = {Head(layer, head).label: trace.pattern(layer, head) for layer, head in heads}
    drawn = [(n, lines(p, most=most, threshold=threshold)) for n, p in patterns.items()]
    figure = view.head_view(drawn, trace.tokens, colours, upright=upright)
    return _titled(figure, f"{trace.model}, lines", size, figure.layout.height, colours.page)


def _titled(figure: go.Figure, title: str, width: int, height: int, page: str) -> go.Figure:
    """The figure with a title and an opaque background, which the app's pages provide otherwise."""
    room = 36  # pixels for the title
    top = {"text": title, "x": 0.01, "y": 1 - 18 / (height + room), "font": {"size": 16}}
    margin = figure.layout.margin.to_plotly_json()
    return figure.update_layout(
        title=top,
        margin={**margin, "t": margin["t"] + room},
        width=width,
        height=height + room,
        paper_bgcolor=page,
        plot_bgcolor=page,
    )
