"""Attention tile by tile: which tile is being computed, and the running values of its queries."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from mha_viz.figures.base import Spec, Style, hover
from mha_viz.figures.labels import label_width, pattern_axes, pattern_margin, token_ticks
from mha_viz.figures.marks import fill, heatmap, rectangle, row_bars, stroke
from mha_viz.figures.text import escape
from mha_viz.figures.theme import NORMAL, TextSizes, Theme, colorscale
from mha_viz.trace import Array

Tile = tuple[range, range]  # its queries and its keys

GAP = 0.08  # between two panels, as a share of the width
FEWEST = 8  # minimum number of rows to leave room for, so that a few bars do not grow thick


def tiles_figure(
    tiles: Sequence[Tile],
    current: int,
    weights: Array,
    tokens: Sequence[str],
    theme: Theme,
    *,
    sizes: TextSizes = NORMAL,
) -> go.Figure:
    """The T x T pattern at tile `current`: finished tiles in grey, this one with its weights.

    `tiles` are in the order of computation. `weights` `[b_q, b_k]` of the current tile run from 0
    to 1 and are coloured by their square root; NaN is blank, and so are cells outside all tiles.
    """
    style, T = Style(theme, sizes), len(tokens)
    queries, keys = tiles[current]
    z = np.full((T, T), np.nan, dtype=np.float32)
    z[queries.start : queries.stop, keys.start : keys.stop] = weights
    cells = heatmap(np.sqrt(z), 0, 1, colorscale(theme), customdata=z, showscale=False)
    done = {"fillcolor": theme.hairline, "layer": "below"} | stroke(theme.page, 1)
    waiting = stroke(theme.hairline, 1)
    outlines = [
        _outline(tile) | (done if i < current else waiting)
        for i, tile in enumerate(tiles)
        if i != current
    ]
    return style.figure(
        cells | hover("from %{y} to %{x}: %{customdata:.3f}"),
        margin=pattern_margin(tokens, tokens, style),
        shapes=[*outlines, _outline(tiles[current]) | stroke(theme.query, 3)],
        **pattern_axes(tokens, tokens, style, fixedrange=True),
    )


def running_figure(
    tokens: Sequence[str],
    panels: dict[str, tuple[Array, tuple[float, float]]],
    theme: Theme,
    *,
    sizes: TextSizes = NORMAL,
) -> go.Figure:
    """A bar for each query in each panel; a panel has a name, a number per query, and its range.

    The last panel is grey: it shows the progress.
    """
    style, n = Style(theme, sizes), len(panels)
    width = (1 - GAP * (n - 1)) / n
    traces, titles, axes = [], [], {}
    for i, (name, (values, limits)) in enumerate(panels.items()):
        suffix, left = (str(i + 1) if i else ""), i * (width + GAP)
        bars = row_bars(values, list(range(len(tokens))), 0.6, xaxis=f"x{suffix}")
        bars |= fill(theme.muted if i == n - 1 else theme.accent)
        traces.append(bars | hover(f"%{{y}}, {escape(name)}: %{{x:.4g}}"))
        axes[f"xaxis{suffix}"] = style.axis(range=list(limits), anchor="y", nticks=3) | {
            "domain": [left, left + width],
            "tickfont": style.muted(-1),
            "ticklabeloverflow": "allow",
        }
        title = style.note(escape(name), left, 1, anchor="left bottom", font=style.ink(1))
        titles.append(title | {"xref": "paper", "yref": "paper"})
    rows = style.axis(ticklabeloverflow="allow", range=[max(len(tokens), FEWEST) - 0.5, -0.5])
    return style.figure(
        *traces,
        margin={"l": label_width(tokens, style), "r": 14, "t": 28, "b": 26},
        annotations=titles,
        yaxis=rows | token_ticks(tokens) | {"tickfont": style.mono()},
        **axes,
    )


def _outline(tile: Tile) -> Spec:
    queries, keys = tile
    return rectangle(keys.start - 0.5, keys.stop - 0.5, queries.start - 0.5, queries.stop - 0.5)
