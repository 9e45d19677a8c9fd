"""Numbers of query and key that are no plain weights: scores, norms, weights on a log scale."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from mha_viz.figures.heatmap import GAPS_UP_TO
from mha_viz.figures.labels import names, pattern_axes, room
from mha_viz.figures.theme import MONO, NORMAL, SANS, Theme, Type, colorscale, diverging_scale
from mha_viz.figures.window import Window, whole
from mha_viz.trace import Array

Colours = Literal["signed", "root", "log"]
MAX_TICKS = 20  # labels a side, which touch on the 260 pixels of a third of the page
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
    sizes: Type = NORMAL,
) -> go.Figure:
    """The values `[T, T]`, a row a query, or a window of them; NaN is blank.

    "signed" colours reach from -top to top, blue and orange; "root" ones follow the square root of
    the share of top; "log" ones its logarithm, over DECADES. The hover shows the value itself. Of
    more than MAX_CELLS a side each cell is the one of largest size in a square block.
    """
    top = top or 1.0
    seen = window or whole(len(tokens))
    block = seen.block
    q0, k0 = seen.first_query, seen.first_key
    cells = largest(values[q0 : seen.end_query, k0 : seen.end_key], block)
    gap = 1 if max(cells.shape) <= GAPS_UP_TO else 0
    centre = (block - 1) / 2
    many = f", the largest of {block} × {block}" if block > 1 else ""
    signed = colours == "signed"
    # Where the colour follows the value itself, the figure holds it once.
    numbers = {"z": cells} if signed else {"z": _place(cells, colours, top), "customdata": cells}
    shown = "z" if signed else "customdata"
    heatmap = {
        "type": "heatmap", **numbers,
        "x0": k0 + centre, "dx": block, "y0": q0 + centre, "dy": block, "xgap": gap, "ygap": gap,
        "zmin": -top if signed else 0, "zmax": top if signed else 1, "hoverongaps": False,
        "colorscale": diverging_scale(theme) if signed else colorscale(theme),
        "hovertemplate": f"from %{{y}} to %{{x}}: %{{{shown}:.4~g}}{many}<extra></extra>",
        "colorbar": _bar(colours, top, theme, sizes),
    }  # fmt: skip
    axes = pattern_axes(tokens, seen, theme, sizes, ticks)
    layout = {
        "template": "none", "dragmode": False, "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)", "font": {"family": SANS, "color": theme.ink},
        "meta": names(tokens, block=block),
        "margin": {"l": room(tokens, sizes), "t": room(tokens, sizes), "r": 6, "b": BAR},
        "hoverlabel": {"bgcolor": theme.surface, "bordercolor": theme.query,
                       "font": {"family": MONO, "size": sizes.tick + 1, "color": theme.ink}},
        **{name: axis | {"fixedrange": True} for name, axis in axes.items()},
    }  # fmt: skip
    return go.Figure(data=[heatmap], layout=layout)


def largest(values: Array, block: int) -> Array:
    """Of each block x block square the value of the largest size, with its sign; NaN if all is."""
    if block == 1:
        return values
    rows, columns = (np.arange(0, n, block) for n in values.shape)

    def most(x: Array) -> Array:
        found: Array = np.maximum.reduceat(np.maximum.reduceat(x, rows, 0), columns, 1)
        return found

    blank = np.isnan(values)
    up = most(np.where(blank, -np.inf, values))
    down = most(np.where(blank, -np.inf, -values))
    found: Array = np.where(up >= down, up, -down).astype(np.float32)
    found[np.isneginf(up)] = np.nan
    return found


def _place(cells: Array, colours: Colours, top: float) -> NDArray[np.float32]:
    share = cells / np.float32(top)
    if colours == "root":
        root: Array = np.sqrt(share)
        return root
    floor = np.float32(10.0**-DECADES)
    place: Array = 1 + np.log10(np.maximum(share, floor)) / np.float32(DECADES)
    return place


def _bar(colours: Colours, top: float, theme: Theme, sizes: Type) -> dict[str, object]:
    """The colour bar under the cells, with a few of the values that its colours stand for."""
    if colours == "signed":
        shares, at = [-1.0, 0.0, 1.0], [-top, 0.0, top]
    elif colours == "root":
        shares, at = [0.0, 0.05, 0.2, 0.5, 1.0], [v**0.5 for v in (0.0, 0.05, 0.2, 0.5, 1.0)]
    else:
        shares = [10.0**-d for d in range(DECADES, -1, -1)]
        at = [d / DECADES for d in range(DECADES + 1)]
    labels = [_short(share * top) for share in shares]
    if colours == "log":
        labels[0] = f"≤ {labels[0]}"
    return {
        "orientation": "h", "x": 0, "xanchor": "left", "y": 0, "yanchor": "top", "ypad": 8,
        "xpad": 0, "len": 0.8, "thickness": 8, "outlinewidth": 0, "ticks": "", "tickangle": 0,
        "tickvals": at, "ticktext": labels,
        "tickfont": {"size": sizes.tick - 1, "color": theme.muted},
    }  # fmt: skip


def _short(value: float) -> str:
    return f"{value:.3g}".replace("-", "−").replace("e−0", "e−")
