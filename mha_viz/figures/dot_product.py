"""A query times a key: both as strips of cells, their products, and the sum as it grows."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from mha_viz.figures.theme import MONO, NORMAL, SANS, Theme, Type, diverging_scale

Numbers = NDArray[np.float64]
LABELS = 24  # elements that are numbered, which a phone still shows apart
STRIPS = (0.5, 1.0)  # of the height, for the strips; the rest is for the sum
SPACE = "\u2002"  # between a letter and its strip
SUM = (0.0, 0.45)


def dot_product_figure(
    q: Numbers,
    k: Numbers,
    order: Sequence[int],
    theme: Theme,
    *,
    sizes: Type = NORMAL,
) -> go.Figure:
    """The q and k `[d_h]`, q x k below them, and the running sum of q x k, in the order given.

    Blue is below zero and orange above, from -m to m: one m for q and k, another for q x k. A bar
    reaches from the sum before an element to the sum after it, and a line follows the sum.
    """
    at = np.asarray(order)
    q, k = q[at], k[at]
    products = q * k
    running = np.cumsum(products)
    x = np.arange(len(at))
    top, top_product = float(max(np.abs(q).max(), np.abs(k).max())), float(np.abs(products).max())
    blank = np.full(len(at), np.nan)
    data = [
        _strip([q, k, blank], at, top, theme),
        _strip([blank, blank, products], at, top_product, theme),
        _bars(x, at, products, running, theme),
        _line(x, running, theme),
    ]  # fmt: skip
    low, high = min(0.0, float(running.min())), max(0.0, float(running.max()))
    room = 0.1 * (high - low) or 1.0
    step = -(-len(at) // LABELS)
    axis: dict[str, object] = {
        "showgrid": False, "zeroline": False, "ticks": "", "fixedrange": True, "showline": False,
        "ticklabeloverflow": "allow",
        "tickfont": {"size": sizes.tick, "color": theme.muted},
    }  # fmt: skip
    layout = {
        "template": "none", "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": 54, "r": 12, "t": 4, "b": 38}, "dragmode": False, "showlegend": False,
        "font": {"family": SANS, "color": theme.ink}, "hovermode": "closest", "bargap": 0,
        "hoverlabel": {"bgcolor": theme.surface, "bordercolor": theme.query,
                       "font": {"family": MONO, "size": sizes.tick + 1, "color": theme.ink}},
        "xaxis": axis | {
            "range": [-0.5, len(at) - 0.5], "anchor": "y2", "tickangle": 0,
            "tickvals": x[::step], "ticktext": [str(i) for i in at[::step]],
            "title": {"text": "element of the head", "standoff": 6,
                      "font": {"size": sizes.note, "color": theme.muted}},
        },
        "yaxis": axis | {
            "domain": STRIPS, "range": [2.5, -0.5], "tickvals": [0, 1, 2],
            "ticktext": [
                f'<span style="color:{theme.query}"><b>q</b></span>{SPACE}',
                f'<span style="color:{theme.key}"><b>k</b></span>{SPACE}', f"q × k{SPACE}",
            ],
            "tickfont": {"size": sizes.tick + 2, "color": theme.ink},
        },
        "yaxis2": axis | {
            "domain": SUM, "range": [low - room, high + 2.6 * room], "nticks": 5,
            "showgrid": True, "gridcolor": theme.hairline, "anchor": "x",
        },
        "shapes": [
            {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "yref": "y2", "y0": 0, "y1": 0,
             "line": {"color": theme.control, "width": 1}, "layer": "below"},
        ],
        "annotations": [_end(float(running[-1]), theme, sizes)],
    }  # fmt: skip
    return go.Figure(data=data, layout=layout)


def _strip(
    rows: Sequence[Numbers], at: NDArray[np.intp], top: float, theme: Theme
) -> dict[str, object]:
    return {
        "type": "heatmap", "z": np.stack(rows).astype(np.float32), "zmin": -top or -1.0,
        "zmax": top or 1.0, "colorscale": diverging_scale(theme), "showscale": False,
        "hoverongaps": False, "xgap": 1 if len(at) <= 64 else 0, "ygap": 6,
        "text": [[f"{name}, element {d}" for d in at] for name in ("q", "k", "q × k")],
        "hovertemplate": "%{text}: %{z:.4f}<extra></extra>",
    }  # fmt: skip


def _bars(
    x: NDArray[np.intp], at: NDArray[np.intp], products: Numbers, running: Numbers, theme: Theme
) -> dict[str, object]:
    colours = np.where(products < 0, theme.diverging[2], theme.diverging[7])
    return {
        "type": "bar", "x": x, "y": products, "base": running - products, "yaxis": "y2",
        "width": 0.86, "marker": {"color": colours.tolist(), "line": {"width": 0}},
        "customdata": np.stack([at, running], axis=1).tolist(),
        "hovertemplate": "element %{customdata[0]}: adds %{y:.4f}, the sum is now "
                         "%{customdata[1]:.4f}<extra></extra>",
    }  # fmt: skip


def _line(x: NDArray[np.intp], running: Numbers, theme: Theme) -> dict[str, object]:
    return {
        "type": "scatter", "mode": "lines", "x": [x[0] - 1, *x, x[-1] + 1],
        "y": [0.0, *running, running[-1]], "yaxis": "y2", "hoverinfo": "skip",
        "line": {"color": theme.ink, "width": 1.5, "shape": "hvh"},
    }  # fmt: skip


def _end(total: float, theme: Theme, sizes: Type) -> dict[str, object]:
    said = f"{total:.3f}".replace("-", "−")
    return {
        "text": f"<b>q · k = {said}</b>", "xref": "x domain", "x": 1, "y": 1, "yref": "y2 domain",
        "xanchor": "right", "yanchor": "top", "showarrow": False,
        "font": {"size": sizes.note + 2, "color": theme.ink},
    }  # fmt: skip
