"""One head's pattern: rows look from, columns look at, blank is masked."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from mha_viz.figures.labels import names, pattern_axes, room
from mha_viz.figures.scale import Scale, hidden, position, ticks
from mha_viz.figures.theme import MONO, NORMAL, SANS, Theme, Type, colorscale
from mha_viz.figures.window import Window, whole
from mha_viz.trace import Array, max_pool

GAPS_UP_TO = 40  # tokens, with a pixel of page between the cells
ROOM_FOR_NOTES = 5  # tokens; below that the blank triangle is too small to write in


def head_heatmap(
    pattern: Array,
    tokens: Sequence[str],
    theme: Theme,
    *,
    window: Window | None = None,
    scale: Scale = "sqrt",
    dim_sink: bool = False,
    sizes: Type = NORMAL,
) -> go.Figure:
    """The pattern `[T, T]`, or a window of it, with a token on every row and column.

    Colour follows `scale`; the hover shows the weight itself. More than MAX_CELLS a side are
    max-pooled; then a cell is the largest weight among the tokens it covers.
    """
    seen = window or whole(len(tokens))
    block = seen.block
    q0, k0 = seen.first_query, seen.first_key
    part = pattern[q0 : seen.end_query, k0 : seen.end_key]
    weights = max_pool(part, block)
    seen_keys = ~hidden(*part.shape, first_query=q0, first_key=k0)
    masked = max_pool(seen_keys.astype(np.float32), block) == 0
    z = position(weights, scale, first_query=q0, block=block).astype(np.float32)
    z = np.where(masked, np.float32(np.nan), z)
    weights = np.where(masked, np.float32(np.nan), weights)
    roomy = len(tokens) > ROOM_FOR_NOTES and _corner_is_blank(masked)
    gap = 1 if max(part.shape) <= GAPS_UP_TO else 0
    centre = (block - 1) / 2
    to_weight = "%{customdata:.3f}" + (" at most" if block > 1 else "")
    heatmap = {
        "type": "heatmap", "z": z, "x0": k0 + centre, "dx": block, "y0": q0 + centre, "dy": block,
        "customdata": weights, "zmin": 0, "zmax": 1, "colorscale": colorscale(theme),
        "xgap": gap, "ygap": gap, "hoverongaps": False,
        "hovertemplate": f"from %{{y}} to %{{x}}: {to_weight}<extra></extra>",
        "colorbar": _colour_bar(scale, theme, sizes, inside=roomy),
    }  # fmt: skip
    dimmed = {
        "type": "rect", "x0": -0.5, "x1": 0.5, "y0": q0 - 0.5, "y1": seen.end_query - 0.5,
        "fillcolor": theme.page, "opacity": 0.75, "line": {"width": 0},
    }  # fmt: skip
    note = {
        "text": "blank = masked:<br>no token looks ahead", "xref": "x domain", "yref": "y domain",
        "x": 1, "y": 0.72, "xanchor": "right", "yanchor": "top", "align": "right",
        "showarrow": False, "font": {"size": sizes.note, "color": theme.muted},
    }  # fmt: skip
    margins = {
        "l": room(tokens, sizes, seen.first_query, seen.end_query),
        "t": room(tokens, sizes, seen.first_key, seen.end_key), "r": 6, "b": 6,
    }  # fmt: skip
    layout: dict[str, object] = {
        "template": "none", "dragmode": "zoom", "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)", "margin": margins, "meta": names(tokens, block=block),
        "font": {"family": SANS, "color": theme.ink},
        "hoverlabel": {"bgcolor": theme.surface, "bordercolor": theme.query,
                       "font": {"family": MONO, "size": sizes.tick + 1, "color": theme.ink}},
        "shapes": [dimmed] if dim_sink and k0 == 0 else [],
        "annotations": [note] if roomy else [],
        **pattern_axes(tokens, seen, theme, sizes),
    }  # fmt: skip
    # One construction: each update of a figure costs as much as the whole of it.
    return go.Figure(data=[heatmap], layout=layout)


def _corner_is_blank(masked: NDArray[np.bool_]) -> bool:
    """Whether the colour bar and the note fit into the masked corner at the top right."""
    rows, columns = masked.shape
    return bool(masked[: -(-rows * 3 // 10), columns - columns // 2 :].all())


def _colour_bar(scale: Scale, theme: Theme, sizes: Type, *, inside: bool) -> dict[str, object]:
    at, labels, title = ticks(scale)
    bar: dict[str, object] = {
        "title": {"text": title, "font": {"size": sizes.note, "color": theme.muted}},
        "tickvals": at, "ticktext": labels, "tickangle": 0, "outlinewidth": 0, "ticks": "",
        "tickfont": {"size": sizes.tick - 1, "color": theme.muted},
    }  # fmt: skip
    if not inside:
        return bar | {"thickness": 12, "len": 0.6, "title_side": "right"}
    return bar | {
        "orientation": "h", "x": 1, "xanchor": "right", "y": 0.97, "yanchor": "top",
        "len": 0.44, "thickness": 10, "title_side": "top",
    }  # fmt: skip
