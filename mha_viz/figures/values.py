"""The numbers of a matrix as a heatmap, blue below zero and orange above, or violet for weights."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from mha_viz.figures.labels import LABEL, MAX_TICKS, names
from mha_viz.figures.text import literal
from mha_viz.figures.theme import MONO, NORMAL, SANS, Theme, Type, colorscale, diverging_scale
from mha_viz.tokens import shorten
from mha_viz.trace import Array

MAX_CELLS = 256  # a side; of more, the one of largest size in each block is drawn


def matrix_heatmap(
    values: Array,
    theme: Theme,
    *,
    rows: str,
    columns: str,
    tokens: Sequence[str] = (),
    both: bool = False,
    top: float | None = None,
    weights: bool = False,
    most_labels: int = MAX_TICKS,
    sizes: Type = NORMAL,
) -> go.Figure:
    """The matrix `[n, m]`, a row for each token; the scale ends at +-`top`, its largest size.

    `rows` and `columns` name the axes; at most `most_labels` tokens are written on one. With
    `both`, columns are tokens too. `weights` are drawn from 0 to 1 by their square root, as
    everywhere else. What is not finite is blank.
    """
    block = max(1, -(-max(values.shape) // MAX_CELLS))
    cells = _strongest(np.where(np.isfinite(values), values, np.nan).astype(np.float32), block)
    top = top or float(np.nanmax(np.abs(cells), initial=0.0)) or 1.0
    if weights:
        z, low, high, scale = np.sqrt(cells), 0.0, 1.0, colorscale(theme)
    else:
        z, low, high, scale = cells, -top, top, diverging_scale(theme)
    at = {"x0": (block - 1) / 2, "dx": block, "y0": (block - 1) / 2, "dy": block}
    heatmap = {
        "type": "heatmap", "z": z, "customdata": cells, **at, "zmin": low, "zmax": high,
        "colorscale": scale, "hoverongaps": False,
        "hovertemplate": f"{rows} %{{y}}, {columns} %{{x}}: %{{customdata:.4g}}<extra></extra>",
        "colorbar": _bar(weights, top, theme, sizes),
    }  # fmt: skip
    n, m = values.shape
    axis = {
        "showgrid": False, "zeroline": False, "ticks": "", "constrain": "domain",
        "ticklabeloverflow": "allow", "fixedrange": False,
        "tickfont": {"size": sizes.tick, "family": MONO, "color": theme.ink},
        "title": {"font": {"size": sizes.note, "color": theme.muted}, "standoff": 4},
    }  # fmt: skip
    x: dict[str, object] = axis | {"side": "top", "range": [-0.5, m - 0.5]}
    y: dict[str, object] = axis | {"range": [n - 0.5, -0.5]}
    x["title"] = {**axis["title"], "text": columns}  # type: ignore[dict-item]
    if tokens:
        y |= _labels(tokens, n, most_labels)
    else:
        y["title"] = {**axis["title"], "text": rows}  # type: ignore[dict-item]
    if both:
        x |= _labels(tokens, m, most_labels) | {"tickangle": -90}
        y |= {"scaleanchor": "x", "constraintoward": "top"}
        x |= {"constraintoward": "left", "title": {}}
    room = 0.6 * sizes.tick * max((len(shorten(t, LABEL)) for t in tokens), default=4) + 14
    layout = {
        "template": "none", "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": room, "r": 6, "t": room if both else 40, "b": 6},
        "font": {"family": SANS, "color": theme.ink}, "dragmode": "zoom",
        "meta": names(tokens, on="xy" if both else "y", block=block) if tokens else None,
        "hoverlabel": {"bgcolor": theme.surface, "bordercolor": theme.query,
                       "font": {"family": MONO, "size": sizes.tick + 1, "color": theme.ink}},
        "xaxis": x, "yaxis": y,
    }  # fmt: skip
    return go.Figure(data=[heatmap], layout=layout)


def _labels(tokens: Sequence[str], n: int, most: int) -> dict[str, object]:
    at = list(range(0, n, -(-n // most)))
    return {"tickvals": at, "ticktext": [literal(shorten(tokens[i], LABEL)) for i in at]}


def _bar(weights: bool, top: float, theme: Theme, sizes: Type) -> dict[str, object]:
    bar: dict[str, object] = {
        "thickness": 10, "outlinewidth": 0, "ticks": "",
        "tickfont": {"size": sizes.tick - 1, "color": theme.muted},
    }  # fmt: skip
    if weights:
        marks = [0, 0.05, 0.2, 0.5, 1]
        return bar | {
            "tickvals": [w**0.5 for w in marks],
            "ticktext": ["0", ".05", ".2", ".5", "1"],
        }
    at = [-top, 0, top]
    return bar | {"tickvals": at, "ticktext": [f"{v:.3g}".replace("-", "−") for v in at]}


def _strongest(cells: Array, block: int) -> Array:
    """Of each block x block square the number of the largest size, with its sign."""
    if block == 1:
        return cells
    at = [np.arange(0, n, block) for n in cells.shape]
    blank = np.isnan(cells)

    def largest(x: Array) -> Array:
        found: Array = np.maximum.reduceat(np.maximum.reduceat(x, at[0], 0), at[1], 1)
        return found

    up, down = (largest(np.where(blank, -np.inf, sign * cells)) for sign in (1, -1))
    found: Array = np.where(up >= down, up, -down)
    found[np.isinf(found)] = np.nan
    return found
