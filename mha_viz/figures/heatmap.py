"""One head's pattern: each row shows what one token looks at; masked keys are blank."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from mha_viz.figures.base import Spec, Style, hover
from mha_viz.figures.labels import pattern_axes, pattern_margin
from mha_viz.figures.marks import gaps, heatmap, rectangle
from mha_viz.figures.scale import Scale, coloured, future, place, root_ticks, ticks
from mha_viz.figures.theme import NORMAL, TextSizes, Theme, colorscale
from mha_viz.figures.window import Window, whole
from mha_viz.trace import Array, max_pool

ROOM_FOR_NOTES = 5  # tokens; with fewer, the blank triangle is too small for text


def head_heatmap(
    pattern: Array,
    tokens: Sequence[str],
    theme: Theme,
    *,
    window: Window | None = None,
    scale: Scale = "sqrt",
    dim_sink: bool = False,
    sizes: TextSizes = NORMAL,
) -> go.Figure:
    """The pattern `[T, T]`, or a window of it, with a token on every row and column.

    Colour follows `scale`; the hover shows the weight itself. More than MAX_CELLS per side are
    pooled: a cell and its hover then show the largest value in a block.
    """
    style = Style(theme, sizes)
    seen = window or whole(len(tokens))
    block, q0, k0 = seen.block, seen.first_query, seen.first_key
    part = pattern[q0 : seen.end_query, k0 : seen.end_key]
    allowed = ~future(*part.shape, first_query=q0, first_key=k0)
    masked = max_pool(allowed.astype(np.float32), block) == 0
    values = max_pool(coloured(part, scale, first_query=q0), block)
    z = place(values, scale).astype(np.float32)
    shown = part if block == 1 else values
    z, shown = (np.where(masked, np.float32(np.nan), x) for x in (z, shown))
    roomy = len(tokens) > ROOM_FOR_NOTES and _corner_is_blank(masked)
    number = "%{customdata:.3f}"
    if block > 1:
        number = "%{customdata:.3~g} × uniform at most" if scale == "share" else f"{number} at most"
    text = hover(f"from %{{y}} to %{{x}}: {number}")
    bar = {"colorbar": _colour_bar(scale, style, inside=roomy)}
    cells = heatmap(z, 0, 1, colorscale(theme), origin=(k0, q0), block=block, customdata=shown)
    return style.figure(
        cells | gaps(z) | text | bar,
        dragmode="zoom",
        margin=pattern_margin(tokens, tokens, style, seen),
        shapes=[_dimmed_column(seen, theme)] if dim_sink and k0 == 0 else [],
        annotations=[_mask_note(style)] if roomy else [],
        **pattern_axes(tokens, tokens, style, seen),
    )


def _dimmed_column(seen: Window, theme: Theme) -> Spec:
    column = rectangle(-0.5, 0.5, seen.first_query - 0.5, seen.end_query - 0.5)
    return column | {"fillcolor": theme.page, "opacity": 0.75, "line": {"width": 0}}


def _mask_note(style: Style) -> Spec:
    text = "blank (masked):<br>no token looks ahead"
    place = {"xref": "x domain", "yref": "y domain", "align": "right"}
    return style.note(text, 1, 0.72, anchor="right top") | place


def _corner_is_blank(masked: NDArray[np.bool_]) -> bool:
    """Whether the colour bar and the note fit into the masked corner at the top right."""
    rows, columns = masked.shape
    return bool(masked[: -(-rows * 3 // 10), columns - columns // 2 :].all())


def _colour_bar(scale: Scale, style: Style, *, inside: bool) -> Spec:
    at, labels, title = ticks(scale)
    if inside and scale == "sqrt":  # on a phone, more numbers would touch
        at, labels = root_ticks()
    bar = style.colour_bar(at, labels, title={"text": title, "font": style.muted()})
    if not inside:
        return bar | {"thickness": 12, "len": 0.6, "title_side": "right"}
    corner = {"orientation": "h", "x": 1, "xanchor": "right", "y": 0.97, "yanchor": "top"}
    return bar | corner | {"len": 0.44, "thickness": 10, "title_side": "top"}
