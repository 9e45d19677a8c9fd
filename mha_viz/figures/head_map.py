"""A number for each head: layers down, heads across, stronger where it is larger."""

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from mha_viz.figures.theme import NORMAL, SANS, Theme, Type, between, mix

WRITTEN_UP_TO = 14  # heads across, with the number written in the cell


def head_map(
    values: NDArray[np.float64],
    theme: Theme,
    *,
    bounds: tuple[float, float],
    chosen: tuple[int, int],
    name: str,
    diverging: bool = False,
    sizes: Type = NORMAL,
) -> go.Figure:
    """A cell for each of `values` `[L, H]`, coloured from the lower to the upper of `bounds`.

    With `diverging` the middle of the bounds has no colour. NaN is blank. The customdata of a cell
    is [layer, head], so that a click can choose it; `name` is said on hover.
    """
    L, H = values.shape
    layers, heads = (axis.ravel() for axis in np.indices((L, H)))
    flat = values.ravel()
    low, high = bounds
    share = np.clip((np.nan_to_num(flat, nan=low) - low) / ((high - low) or 1.0), 0, 1)
    colours = [
        (mix(theme, 2 * v - 1) if diverging else between(theme, v))
        if np.isfinite(x)
        else "rgba(0,0,0,0)"
        for v, x in zip(share.tolist(), flat, strict=True)
    ]
    strong = np.abs(2 * share - 1) if diverging else share
    cells = {
        "type": "bar", "x": heads, "y": np.ones(L * H), "base": layers - 0.5, "width": 1,
        "marker": {"color": colours, "line": {"width": 2, "color": theme.page}},
        "selected": {"marker": {"opacity": 1}}, "unselected": {"marker": {"opacity": 1}},
        "customdata": [
            [int(i), int(h), _said(v)] for i, h, v in zip(layers, heads, flat, strict=True)
        ],
        "hovertemplate": f"L%{{customdata[0]}} H%{{customdata[1]}}, {name}: %{{customdata[2]}}"
                         "<extra></extra>",
    }  # fmt: skip
    if H <= WRITTEN_UP_TO:
        cells |= {
            "text": [_short(v) for v in flat], "textposition": "inside",
            "insidetextanchor": "middle", "textangle": 0, "constraintext": "none",
            "textfont": {
                "size": sizes.cell - 1,
                "color": [
                    theme.ink_on_strong if s > theme.ink_flips_at else theme.ink for s in strong
                ],
            },
        }  # fmt: skip
    layer, head = chosen
    ring = {
        "type": "rect", "x0": head - 0.5, "x1": head + 0.5, "y0": layer - 0.5, "y1": layer + 0.5,
        "line": {"color": theme.query, "width": 3},
    }  # fmt: skip
    axis = {
        "showgrid": False, "zeroline": False, "ticks": "", "fixedrange": True,
        "constrain": "domain", "tickfont": {"size": sizes.tick, "color": theme.muted},
    }  # fmt: skip
    step = 1 if H <= 16 else 2 if H <= 32 else 4
    layout = {
        "template": "none", "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": 34, "r": 4, "t": 26, "b": 4}, "dragmode": False, "showlegend": False,
        "font": {"family": SANS, "color": theme.ink}, "barmode": "overlay", "bargap": 0,
        "hovermode": "closest", "clickmode": "event+select", "shapes": [ring],
        "hoverlabel": {"bgcolor": theme.surface, "bordercolor": theme.query,
                       "font": {"family": SANS, "size": sizes.tick + 1, "color": theme.ink}},
        "xaxis": axis | {
            "side": "top", "range": [-0.5, H - 0.5], "tickvals": list(range(0, H, step)),
            "ticktext": [f"H{h}" if h == 0 else str(h) for h in range(0, H, step)],
        },
        "yaxis": axis | {
            "range": [L - 0.5, -0.5], "tickvals": list(range(L)),
            "ticktext": [f"L{i}" if i == 0 else str(i) for i in range(L)],
        },
    }  # fmt: skip
    return go.Figure(data=[cells], layout=layout)


def _said(value: float) -> str:
    if not np.isfinite(value):
        return "no value"
    return f"{round(value, 4) + 0.0:.4f}".replace("-", "−")  # no zero is negative


def _short(value: float) -> str:
    if not np.isfinite(value):
        return ""
    digits = 2 if abs(value) < 10 else 0
    return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")
