"""Attention tile by tile: where the work stands, and the running values of the queries at work."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from mha_viz.figures.labels import room, token_ticks
from mha_viz.figures.theme import MONO, NORMAL, SANS, Theme, Type, colorscale
from mha_viz.trace import Array

Ranges = tuple[range, range]  # the queries and the keys of a tile

GAP = 0.08  # between two panels, of the width
FEWEST = 8  # rows that there is room for, so that few bars are no planks


def tiles_figure(
    tiles: Sequence[Ranges],
    at: int,
    weights: Array,
    tokens: Sequence[str],
    theme: Theme,
    *,
    sizes: Type = NORMAL,
) -> go.Figure:
    """The T x T square at tile `at`: finished ones grey, this one with its weights, others empty.

    `tiles` are in the order of the work; `weights` `[b_q, b_k]` belong to the tile at work, from 0
    to 1, drawn by their square root, blank where not a number. What no tile covers stays blank.
    """
    T = len(tokens)
    queries, keys = tiles[at]
    z = np.full((T, T), np.nan, dtype=np.float32)
    z[queries.start : queries.stop, keys.start : keys.stop] = weights
    heatmap = {
        "type": "heatmap", "z": np.sqrt(z), "customdata": z, "zmin": 0, "zmax": 1,
        "colorscale": colorscale(theme), "showscale": False, "hoverongaps": False,
        "hovertemplate": "from %{y} to %{x}: %{customdata:.3f}<extra></extra>",
    }  # fmt: skip
    outlines = [_outline(tile, theme, done=i < at) for i, tile in enumerate(tiles) if i != at]
    mark = _rectangle(tiles[at]) | {"line": {"color": theme.query, "width": 3}}
    axis = _axis(theme, sizes) | {"range": [-0.5, T - 0.5], "constrain": "domain"}
    side = room(tokens, sizes)
    layout = _layout(theme, sizes) | {
        "margin": {"l": side, "r": 6, "t": side, "b": 6}, "shapes": [*outlines, mark],
        "xaxis": axis | token_ticks(tokens) | {"side": "top", "tickangle": -90,
                                           "constraintoward": "left"},
        "yaxis": axis | token_ticks(tokens) | {"range": [T - 0.5, -0.5], "scaleanchor": "x",
                                           "constraintoward": "top"},
    }  # fmt: skip
    return go.Figure(data=[heatmap], layout=layout)


def running_figure(
    tokens: Sequence[str],
    panels: dict[str, tuple[Array, tuple[float, float]]],
    theme: Theme,
    *,
    sizes: Type = NORMAL,
) -> go.Figure:
    """A bar for each query in each panel; a panel has a name, a number a query, and its range.

    The last panel is grey: it says how far the work is from its end.
    """
    n, rows = len(panels), list(range(len(tokens)))
    width = (1 - GAP * (n - 1)) / n
    data, axes, titles = [], {}, []
    for number, (name, (values, limits)) in enumerate(panels.items()):
        suffix = "" if number == 0 else str(number + 1)
        left = number * (width + GAP)
        colour = theme.muted if number == n - 1 else theme.accent
        data.append(_bars(rows, values, name, suffix, colour, theme, sizes))
        axes[f"xaxis{suffix}"] = _axis(theme, sizes) | {
            "domain": [left, left + width], "range": list(limits), "anchor": "y", "nticks": 3,
            "tickfont": {"size": sizes.tick - 1, "color": theme.muted},
        }  # fmt: skip
        titles.append(
            {"text": name, "xref": "paper", "yref": "paper", "x": left, "y": 1, "xanchor": "left",
             "yanchor": "bottom", "showarrow": False,
             "font": {"size": sizes.note + 1, "color": theme.ink}}
        )  # fmt: skip
    layout = _layout(theme, sizes) | axes | {
        "margin": {"l": room(tokens, sizes), "r": 14, "t": 28, "b": 26}, "annotations": titles,
        "barmode": "overlay",
        "yaxis": _axis(theme, sizes) | token_ticks(tokens) | {
            "range": [max(len(tokens), FEWEST) - 0.5, -0.5]
        },
    }  # fmt: skip
    return go.Figure(data=data, layout=layout)


def _bars(
    rows: list[int], values: Array, name: str, suffix: str, colour: str, theme: Theme, sizes: Type
) -> dict[str, object]:
    return {
        "type": "bar", "orientation": "h", "x": values, "y": rows, "width": 0.6,
        "xaxis": f"x{suffix}", "yaxis": "y", "marker": {"color": colour, "line": {"width": 0}},
        "hovertemplate": f"%{{y}}, {name}: %{{x:.4g}}<extra></extra>", "showlegend": False,
    }  # fmt: skip


def _outline(tile: Ranges, theme: Theme, *, done: bool) -> dict[str, object]:
    fill = {"fillcolor": theme.hairline, "layer": "below"} if done else {}
    return _rectangle(tile) | fill | {"line": {"color": theme.page if done else theme.hairline,
                                               "width": 1}}  # fmt: skip


def _rectangle(tile: Ranges) -> dict[str, object]:
    queries, keys = tile
    return {
        "type": "rect", "x0": keys.start - 0.5, "x1": keys.stop - 0.5,
        "y0": queries.start - 0.5, "y1": queries.stop - 0.5,
    }  # fmt: skip


def _layout(theme: Theme, sizes: Type) -> dict[str, object]:
    return {
        "template": "none", "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)",
        "dragmode": False, "font": {"family": SANS, "color": theme.ink},
        "hoverlabel": {"bgcolor": theme.surface, "bordercolor": theme.query,
                       "font": {"family": MONO, "size": sizes.tick + 1, "color": theme.ink}},
    }  # fmt: skip


def _axis(theme: Theme, sizes: Type) -> dict[str, object]:
    return {
        "showgrid": False, "zeroline": False, "showline": False, "ticks": "", "fixedrange": True,
        "ticklabeloverflow": "allow",
        "tickfont": {"size": sizes.tick, "family": MONO, "color": theme.ink},
    }  # fmt: skip
