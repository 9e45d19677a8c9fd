"""One of two patterns that are compared, or their difference, small enough to stand in a row."""

from collections.abc import Collection, Sequence

import numpy as np
import plotly.graph_objects as go

from mha_viz.figures.base import Spec, Style, hover
from mha_viz.figures.labels import label_width, tick_positions, token_axis, token_labels
from mha_viz.figures.marks import gaps, heatmap, rectangle, stroke
from mha_viz.figures.pooling import pool_by_magnitude
from mha_viz.figures.scale import Scale, coloured, place, root_ticks, ticks
from mha_viz.figures.text import escape, with_minus
from mha_viz.figures.theme import NORMAL, TextSizes, Theme, colorscale, diverging_scale
from mha_viz.figures.window import MAX_CELLS
from mha_viz.trace import Array

ROOM = 6  # tokens; with fewer, the blank triangle has no room for a colour bar
ROOM_FOR_TITLE = 3
NARROW = 6  # pixels beside rows without labels


def compared_pattern(
    values: Array,
    tokens: Sequence[str],
    theme: Theme,
    *,
    title: str,
    top: float | None = None,
    query: int | None = None,
    first: int = 0,
    changed: Collection[int] = (),
    labelled: bool = True,
    most_labels: int = 18,
    scale: Scale = "sqrt",
    dim_sink: bool = False,
    sizes: TextSizes = NORMAL,
) -> go.Figure:
    """The weights `[n, n]`, coloured by `scale`; with `top`, differences from -`top` to `top`.

    Keys after the query are blank. The row of `query` is framed; `changed` tokens are bold. Without
    `labelled` the rows have no labels, for a figure beside one that has them. Of many tokens at
    most `most_labels` are named, `query` and `changed` always.
    `dim_sink` pales the first column, unless `first`, the place of the first token, is later.
    """
    style, n = Style(theme, sizes), len(tokens)
    block = max(1, -(-n // MAX_CELLS))
    visible = np.where(np.tri(n, dtype=bool), values, np.nan).astype(np.float32)
    if top is None:
        visible = coloured(visible, scale, first_query=first)
    pooled = pool_by_magnitude(visible, block)
    cells = _cells(pooled, top, scale, block, style, inside=n >= ROOM)
    unit = " × uniform" if top is None and scale == "share" else ""
    text = hover(f"from %{{y}} to %{{x}}: %{{customdata:.3f}}{unit}")
    named = _ticks(tokens, most_labels, query, changed, style)
    ends = (-0.5, n - 0.5)
    across = {"side": "top", "tickangle": -90, "constraintoward": "left"}
    down = {"scaleanchor": "x", "constraintoward": "top", "showticklabels": labelled}
    room = label_width(tokens, style)
    return style.figure(
        cells | gaps(pooled) | text | {"customdata": pooled},
        margin={"l": room if labelled else NARROW, "t": room, "r": 4, "b": 4},
        dragmode="zoom",
        shapes=_shapes(query, n, theme, dim_sink=dim_sink and not first),
        annotations=[_title(title, style)] if n >= ROOM_FOR_TITLE else [],
        xaxis=token_axis(style, range=list(ends), **across, **named),
        yaxis=token_axis(style, range=list(reversed(ends)), **down, **named),
    )


def _cells(
    pooled: Array, top: float | None, scale: Scale, block: int, style: Style, *, inside: bool
) -> Spec:
    if top is None:
        at, labels, _ = ticks(scale)
        bar = style.colour_bar(*(root_ticks() if scale == "sqrt" else (at, labels)))
        cells = heatmap(place(pooled, scale), 0, 1, colorscale(style.theme), block=block)
    else:
        labels = [with_minus(f"{value:+.2f}") for value in (-top, top)]
        bar = style.colour_bar([-top, 0, top], [labels[0], "0", labels[1]])
        cells = heatmap(pooled, -top, top, diverging_scale(style.theme), block=block)
    if not inside:
        return cells | {"showscale": False}
    placed = {"orientation": "h", "x": 0.98, "xanchor": "right", "y": 0.86, "yanchor": "top"}
    return cells | {"colorbar": bar | placed | {"len": 0.5, "thickness": 8}}


def _ticks(
    tokens: Sequence[str],
    most: int,
    query: int | None,
    changed: Collection[int],
    style: Style,
) -> Spec:
    """Every k-th token, and those that must be named, whose neighbours give way."""
    n = len(tokens)
    step = max(1, -(-n // most))
    # Many changed tokens would fill the axis.
    named = {i for i in (query, *sorted(changed)[: most // 3]) if i is not None}
    strided = tick_positions(0, n, most)
    free = [i for i in strided if all(i == j or abs(i - j) >= step for j in named)]
    at = sorted({*free, *named}) if step > 1 else strided
    texts = token_labels([tokens[i] for i in at])
    for n_th, i in enumerate(at):
        if i == query:
            texts[n_th] = style.selected(texts[n_th])
        elif i in changed:
            texts[n_th] = f"<b>{texts[n_th]}</b>"
    return {"tickvals": at, "ticktext": texts}


def _shapes(query: int | None, n: int, theme: Theme, *, dim_sink: bool) -> list[Spec]:
    shapes = []
    if dim_sink:
        pale = {"fillcolor": theme.page, "opacity": 0.75, "line": {"width": 0}}
        shapes.append(rectangle(-0.5, 0.5, -0.5, n - 0.5) | pale)
    if query is not None:
        row = rectangle(-0.5, n - 0.5, query - 0.5, query + 0.5)
        shapes.append(row | stroke(theme.query, 2))
    return shapes


def _title(title: str, style: Style) -> Spec:
    where = {"xref": "x domain", "yref": "y domain", "font": style.ink(1)}
    return style.note(f"<b>{escape(title)}</b>", 0.98, 0.99, anchor="right top") | where
