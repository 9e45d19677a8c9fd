"""A tensor drawn to scale, a sheet for each matrix, each head in its colour.

Each pixel is a value and its opacity shows the magnitude, so that the same values can be recognised
after each step.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from PIL import Image

from mha_viz.figures.base import HIDDEN, Spec, Style
from mha_viz.figures.marks import png_uri, rectangle, stroke
from mha_viz.figures.pooling import pool_by_magnitude
from mha_viz.figures.theme import NORMAL, TextSizes, Theme, rgb
from mha_viz.trace import Array

WIDE = 3.4  # width over height of the area that the sheets are laid out in
MAX_PIXELS = 512  # per side of a sheet; larger matrices are pooled
FAINTEST = 0.1  # opacity of a zero, so that a sheet of small values stays visible
TINTS = (1.0, 0.6, 0.35)  # heads beyond the eighth repeat the colours, paler


@dataclass(frozen=True, slots=True)
class Sheet:
    """A matrix on the page; one unit is one value. `heads` own equal blocks of its columns."""

    x: float
    y: float
    values: Array
    heads: tuple[int, ...]

    @property
    def right(self) -> float:
        """The right edge of the sheet."""
        return float(self.x + self.values.shape[1])

    @property
    def bottom(self) -> float:
        """The lower edge of the sheet."""
        return float(self.y + self.values.shape[0])


def head_colours(theme: Theme, n_heads: int) -> list[str]:
    """A colour for each head: eight, then the same in paler tints."""
    page = np.array(rgb(theme.page))
    colours = []
    for head in range(n_heads):
        base = np.array(rgb(theme.categorical[head % len(theme.categorical)]))
        tint = TINTS[min(head // len(theme.categorical), len(TINTS) - 1)]
        mixed = np.rint(base * tint + page * (1 - tint)).astype(int)
        colours.append("#{:02X}{:02X}{:02X}".format(*mixed))
    return colours


def tensor_drawing(
    values: Array,
    axes: Sequence[str],
    theme: Theme,
    *,
    heads: Sequence[int] = (),
    selected: int | None = None,
    sizes: TextSizes = NORMAL,
) -> go.Figure:
    """The tensor `values` with three axes `[B, T, N]` or four, `[B, T, H, N]` or `[B, H, T, N]`.

    `heads` names the owner of each equal block of columns (three axes) or of each matrix (four);
    without it, no head owns the values. NaN and infinite values are blank.
    """
    style = Style(theme, sizes)
    sheets, labels = _lay_out(values, axes, tuple(heads), style)
    colours = head_colours(theme, max(heads, default=0) + 1)
    top = _largest(values)
    axis = HIDDEN | {"constrain": "domain"}
    width, height = max(s.right for s in sheets), max(s.bottom for s in sheets)
    # Plotly draws images only if there is a trace.
    return style.figure(
        {"type": "scatter", "x": [], "y": []},
        margin={"l": 64, "r": 8, "t": 50, "b": 8},
        images=[_image(sheet, colours, theme, top) for sheet in sheets],
        shapes=[outline for sheet in sheets for outline in _outlines(sheet, theme, selected)],
        annotations=labels,
        xaxis=axis | {"range": [0, width], "constraintoward": "left"},
        yaxis=axis | {"range": [height, 0], "scaleanchor": "x", "constraintoward": "top"},
    )


def _lay_out(
    values: Array, axes: Sequence[str], heads: tuple[int, ...], style: Style
) -> tuple[list[Sheet], list[Spec]]:
    """The sheets, one batch element below another, and the labels of axes, elements and heads."""
    B, four = len(values), values.ndim == 4
    if four and axes[1] == "T":
        values, axes = values.swapaxes(1, 2), [axes[0], axes[2], axes[1], axes[3]]
    n = values.shape[1] if four else 1
    rows, columns = values.shape[-2:]
    across = _across(n, rows, columns, B)
    gap = max(1.0, 0.06 * max(rows, columns)) if n > 1 else 0
    # Room for a name over each matrix, on a phone as well.
    pitch = rows + max(gap, 0.035 * across * columns)
    lines = -(-n // across)
    sheets, labels = [], []
    for b in range(B):
        for i in range(n):
            x, y = i % across * (columns + gap), (b * lines + i // across) * pitch
            owners = heads[i : i + 1] if four else heads
            sheets.append(Sheet(x, y, values[b, i] if four else values[b], owners))
            if four:
                name = f"H{owners[0] if owners else i}"
                labels.append(style.note(name, x + columns / 2, y, anchor="center bottom"))
        if B > 1:
            middle = b * lines * pitch + rows / 2
            labels.append(style.note(f"b = {b}", 0, middle, anchor="right middle", xshift=-40))
    return sheets, labels + _axis_names(values.shape, axes, across * (columns + gap) - gap, style)


def _axis_names(
    shape: tuple[int, ...], axes: Sequence[str], width: float, style: Style
) -> list[Spec]:
    """The names and sizes of the axes, around the first sheet."""
    (*outer, rows, columns), font = shape, style.mono(2)
    above = {"yshift": 26 if len(outer) > 1 else 0, "font": font}
    beside = {"xshift": -8, "textangle": -90, "font": font}
    across = style.note(f"{axes[-1]} = {columns}", columns / 2, 0, anchor="center bottom") | above
    down = style.note(f"{axes[-2]} = {rows}", 0, rows / 2, anchor="right middle") | beside
    if len(outer) == 1:
        return [across, down]
    # Plotly hides what lies beyond an axis.
    sizes = f"B = {outer[0]}, H = {outer[1]}"
    return [across, down, style.note(sizes, width - 0.01, 0, anchor="right bottom") | above]


def _across(n: int, rows: int, columns: int, B: int) -> int:
    """The number of matrices side by side that lets all of them be drawn as large as possible."""

    def scale(across: int) -> float:
        lines = -(-n // across) * B
        return min(WIDE / (across * columns * 1.06), 1 / (lines * rows * 1.25))

    return max(range(1, n + 1), key=lambda across: (scale(across), across))


def _outlines(sheet: Sheet, theme: Theme, selected: int | None) -> list[Spec]:
    """The edge of the sheet, the edges between heads, and the selected head above them."""
    edge = rectangle(sheet.x, sheet.right, sheet.y, sheet.bottom, **stroke(theme.control, 1))
    starts = np.linspace(sheet.x, sheet.right, len(sheet.heads) + 1)
    blocks = {
        head: edge | {"x0": float(starts[i]), "x1": float(starts[i + 1])}
        for i, head in enumerate(sheet.heads)
    }
    between = blocks.values() if len(blocks) > 1 else ()
    outlines = [edge, *(block | stroke(theme.page, 1) for block in between)]
    if selected in blocks:
        outlines.append(blocks[selected] | stroke(theme.query, 3))
    return outlines


def _largest(values: Array) -> float:
    finite = np.abs(values[np.isfinite(values)])
    return float(np.quantile(finite, 0.995)) or 1.0 if finite.size else 1.0


def _image(sheet: Sheet, colours: list[str], theme: Theme, top: float) -> Spec:
    rows, columns = sheet.values.shape
    blocks = [-(-n // MAX_PIXELS) for n in (rows, columns)]
    magnitudes = np.where(np.isfinite(sheet.values), np.abs(sheet.values), np.nan)
    pooled = pool_by_magnitude(magnitudes, *blocks)
    opacity = FAINTEST + (1 - FAINTEST) * np.sqrt(np.clip(pooled / top, 0, 1))
    pixels = np.zeros((*pooled.shape, 4), dtype=np.uint8)
    pixels[..., :3] = rgb(theme.muted)
    pixels[..., 3] = np.rint(np.nan_to_num(opacity) * 255)
    if sheet.heads:
        owners = np.arange(pooled.shape[1]) * len(sheet.heads) // pooled.shape[1]
        pixels[..., :3] = np.array([rgb(colours[head]) for head in sheet.heads])[owners]
    place = {"x": sheet.x, "y": sheet.y, "sizex": columns, "sizey": rows}
    source = {"source": png_uri(Image.fromarray(pixels)), "xref": "x", "yref": "y"}
    return source | place | {"sizing": "stretch", "layer": "below"}
