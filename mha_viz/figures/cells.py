"""A value for each query and key: scores, norms, products, weights on a log scale."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import plotly.graph_objects as go

from mha_viz.figures.base import Spec, Style, hover
from mha_viz.figures.labels import label_width, pattern_axes
from mha_viz.figures.marks import gaps, heatmap
from mha_viz.figures.pooling import pool_by_magnitude
from mha_viz.figures.scale import ROOT_TICKS
from mha_viz.figures.text import with_minus
from mha_viz.figures.theme import NORMAL, TextSizes, Theme, colorscale, diverging_scale
from mha_viz.figures.window import Window, whole
from mha_viz.trace import Array

Colours = Literal["signed", "root", "log"]
MAX_TICKS = 20  # labels per side; more would overlap on the 260 pixels of a third of the page
BAR = 44  # pixels below the cells for the colour bar
DECADES = 4  # of the log scale, down from its top


def cell_map(
    values: Array,
    tokens: Sequence[str],
    theme: Theme,
    *,
    colours: Colours,
    top: float,
    window: Window | None = None,
    ticks: int = MAX_TICKS,
    sizes: TextSizes = NORMAL,
) -> go.Figure:
    """The values `[T, T]`, a row per query, or a window of them; NaN is blank.

    "signed" colours run from -top to top, blue and orange; "root" follows the square root of
    value / top; "log" its logarithm, over DECADES. The hover shows the value itself. Beyond
    MAX_CELLS per side, a cell shows the value of largest magnitude in a square block.
    """
    style, top = Style(theme, sizes), top or 1.0
    seen = window or whole(len(tokens))
    block, q0, k0 = seen.block, seen.first_query, seen.first_key
    part = pool_by_magnitude(values[q0 : seen.end_query, k0 : seen.end_key], block)
    place: Spec = {"origin": (k0, q0), "block": block}
    if colours == "signed":  # colour follows the value itself, so the figure holds it once
        cells, shown = heatmap(part, -top, top, diverging_scale(theme), **place), "z"
    else:
        z = _position(part, colours, top)
        cells = heatmap(z, 0, 1, colorscale(theme), customdata=part, **place)
        shown = "customdata"
    pooled = f", the largest of {block} × {block}" if block > 1 else ""
    text = hover(f"from %{{y}} to %{{x}}: %{{{shown}:.4~g}}{pooled}")
    side = label_width(tokens, style)
    return style.figure(
        cells | gaps(part) | text | {"colorbar": _colour_bar(colours, top, style)},
        margin={"l": side, "t": side, "r": 6, "b": BAR},
        **pattern_axes(tokens, tokens, style, seen, most=ticks, fixedrange=True),
    )


def _position(values: Array, colours: Colours, top: float) -> Array:
    """The position of each value on the colour scale, from 0 to 1."""
    share = values / np.float32(top)
    if colours == "root":
        root: Array = np.sqrt(share)
        return root
    floor = np.float32(10.0**-DECADES)
    place: Array = 1 + np.log10(np.maximum(share, floor)) / np.float32(DECADES)
    return place


def _colour_bar(colours: Colours, top: float, style: Style) -> Spec:
    """The colour bar under the cells, with a few of the values that its colours stand for."""
    if colours == "signed":
        shares, at = [-1.0, 0.0, 1.0], [-top, 0.0, top]
    elif colours == "root":
        shares, at = list(ROOT_TICKS), [share**0.5 for share in ROOT_TICKS]
    else:
        shares = [10.0**-decade for decade in range(DECADES, -1, -1)]
        at = [decade / DECADES for decade in range(DECADES + 1)]
    labels = [_short(share * top) for share in shares]
    if colours == "log":
        labels[0] = f"≤ {labels[0]}"
    place = {"orientation": "h", "x": 0, "xanchor": "left", "y": 0, "yanchor": "top"}
    return style.colour_bar(at, labels) | place | {"ypad": 8, "xpad": 0, "len": 0.8, "thickness": 8}


def _short(value: float) -> str:
    return with_minus(f"{value:.3g}").replace("e−0", "e−")
