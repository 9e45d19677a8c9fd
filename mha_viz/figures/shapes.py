"""A tensor as it is shaped: a sheet for each matrix, to scale, each head in its colour.

A pixel is a number; its strength follows the number's size, so that the same numbers can be found
again after each step.
"""

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from PIL import Image

from mha_viz.figures.theme import MONO, NORMAL, SANS, Theme, Type, rgb
from mha_viz.trace import Array

WIDE = 3.4  # width over height of the area that sheets are laid out in
MAX_PIXELS = 512  # a side of a sheet; more numbers than that are pooled
FAINTEST = 0.1  # opacity of a zero, so that a sheet is seen where its numbers are small
TINTS = (1.0, 0.6, 0.35)  # heads beyond the eighth repeat the colours, weaker


@dataclass(frozen=True, slots=True)
class Sheet:
    """A matrix on the page, in units of one number; `heads` says whose each column is."""

    x: float
    y: float
    values: Array
    heads: tuple[int, ...]  # one a block of columns; empty where no head owns them


def head_colours(theme: Theme, n_heads: int) -> list[str]:
    """A colour for each head: eight, then the same in weaker tints."""
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
    chosen: int | None = None,
    sizes: Type = NORMAL,
) -> go.Figure:
    """The tensor `values` with three axes `[B, T, N]` or four, `[B, T, H, N]` or `[B, H, T, N]`.

    `heads` names the owner of each equal block of columns (three axes) or of each matrix (four);
    without it no head owns the numbers. Not-a-number and infinite entries are left blank.
    """
    sheets, labels = _lay_out(values, axes, tuple(heads), sizes, theme)
    n_heads = max(heads, default=0) + 1
    colours = head_colours(theme, n_heads)
    top = _largest(values)
    width = max(s.x + s.values.shape[1] for s in sheets)
    height = max(s.y + s.values.shape[0] for s in sheets)
    images = [
        {
            "source": _image(sheet, colours, theme, top), "xref": "x", "yref": "y",
            "x": sheet.x, "y": sheet.y, "sizex": sheet.values.shape[1],
            "sizey": sheet.values.shape[0], "sizing": "stretch", "layer": "below",
        }
        for sheet in sheets
    ]  # fmt: skip
    frames = [
        frame for sheet in sheets for frame in _frames(sheet, theme, chosen)
    ]  # fmt: skip
    axis = {"visible": False, "fixedrange": True, "constrain": "domain"}
    layout = {
        "template": "none", "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": 64, "r": 8, "t": 50, "b": 8}, "dragmode": False, "showlegend": False,
        "font": {"family": SANS, "color": theme.ink}, "images": images, "shapes": frames,
        "annotations": labels,
        "xaxis": axis | {"range": [0, width], "constraintoward": "left"},
        "yaxis": axis | {"range": [height, 0], "scaleanchor": "x", "constraintoward": "top"},
    }  # fmt: skip
    # Plotly draws images only where there is a trace.
    return go.Figure(data=[{"type": "scatter", "x": [], "y": []}], layout=layout)


def _lay_out(
    values: Array, axes: Sequence[str], heads: tuple[int, ...], sizes: Type, theme: Theme
) -> tuple[list[Sheet], list[dict[str, object]]]:
    big = {"size": sizes.note + 2, "family": MONO, "color": theme.ink}
    small = {"size": sizes.tick, "family": SANS, "color": theme.muted}
    B = len(values)
    if values.ndim == 3:
        matrices = [[(values[b], heads)] for b in range(B)]
    elif axes[1] == "T":
        matrices = [
            [(values[b, :, h], heads[h : h + 1]) for h in range(values.shape[2])] for b in range(B)
        ]
    else:
        matrices = [
            [(values[b, h], heads[h : h + 1]) for h in range(values.shape[1])] for b in range(B)
        ]
    rows, columns = matrices[0][0][0].shape
    across = _across(len(matrices[0]), rows, columns, B)
    gap = max(1.0, 0.06 * max(rows, columns)) if len(matrices[0]) > 1 else 0
    per_batch = -(-len(matrices[0]) // across)
    # Room for a name over each matrix, on a phone as well.
    line = rows + max(gap, 0.035 * across * columns)
    sheets, labels = [], []
    for b, batch in enumerate(matrices):
        for number, (matrix, owner) in enumerate(batch):
            x = (number % across) * (columns + gap)
            y = (b * per_batch + number // across) * line
            sheets.append(Sheet(x, y, matrix, owner))
            if values.ndim == 4:
                name = f"H{owner[0]}" if owner else f"H{number}"
                labels.append(_label(name, x + columns / 2, y, small, yanchor="bottom"))
        if B > 1:
            labels.append(
                _label(f"b = {b}", 0, b * per_batch * line + rows / 2, small, xanchor="right",
                       xshift=-40)
            )  # fmt: skip
    column_axis = f"{axes[-1]} = {columns}"
    row_axis = f"{axes[1] if values.ndim == 3 or axes[1] == 'T' else axes[2]} = {rows}"
    above = 34 if values.ndim == 4 else 8
    labels.append(
        _label(column_axis, columns / 2, 0, big, yanchor="bottom", yshift=above - 8)
    )  # fmt: skip
    labels.append(
        _label(row_axis, 0, rows / 2, big, xanchor="right", xshift=-8, textangle=-90)
    )  # fmt: skip
    if values.ndim == 4:
        outer = f"B = {B}, H = {len(matrices[0])}"
        right = across * (columns + gap) - gap - 0.01  # Plotly hides what lies beyond an axis
        labels.append(
            _label(outer, right, 0, big, xanchor="right", yanchor="bottom", yshift=above - 8)
        )
    return sheets, labels


def _across(n: int, rows: int, columns: int, B: int) -> int:
    """How many matrices stand side by side, so that all are drawn as large as can be."""

    def scale(across: int) -> float:
        lines = -(-n // across) * B
        return min(WIDE / (across * columns * 1.06), 1 / (lines * rows * 1.25))

    return max(range(1, n + 1), key=lambda across: (scale(across), across))


def _label(
    text: str, x: float, y: float, font: dict[str, object], **more: object
) -> dict[str, object]:
    return {"text": text, "x": x, "y": y, "showarrow": False, "font": font, **more}


def _frames(sheet: Sheet, theme: Theme, chosen: int | None) -> list[dict[str, object]]:
    rows, columns = sheet.values.shape
    outline = {
        "type": "rect", "x0": sheet.x, "x1": sheet.x + columns, "y0": sheet.y,
        "y1": sheet.y + rows, "line": {"color": theme.control, "width": 1},
    }  # fmt: skip
    frames = [outline]
    width = columns / max(1, len(sheet.heads))
    for block, head in enumerate(sheet.heads):
        x0 = sheet.x + block * width
        if head == chosen:
            frames.append(
                outline | {"x0": x0, "x1": x0 + width, "line": {"color": theme.query, "width": 3}}
            )
        elif len(sheet.heads) > 1:
            frames.append(
                outline | {"x0": x0, "x1": x0 + width, "line": {"color": theme.page, "width": 1}}
            )
    # The chosen one is drawn last, over its neighbours' lines.
    return sorted(frames, key=lambda frame: frame["line"]["width"])


def _largest(values: Array) -> float:
    finite = np.abs(values[np.isfinite(values)])
    return float(np.quantile(finite, 0.995)) or 1.0 if finite.size else 1.0


def _image(sheet: Sheet, colours: list[str], theme: Theme, top: float) -> str:
    rows, columns = sheet.values.shape
    sizes = np.abs(np.where(np.isfinite(sheet.values), sheet.values, np.nan))
    blocks = [-(-n // MAX_PIXELS) for n in (rows, columns)]
    pooled = _pool(sizes, *blocks)
    strength = FAINTEST + (1 - FAINTEST) * np.sqrt(np.clip(pooled / top, 0, 1))
    alpha = np.where(np.isnan(pooled), 0, strength)
    painted = np.zeros((*pooled.shape, 4), dtype=np.uint8)
    painted[..., 3] = np.rint(alpha * 255)
    if sheet.heads:
        owner = np.arange(pooled.shape[1]) * len(sheet.heads) // pooled.shape[1]
        of_block = np.array([rgb(colours[head]) for head in sheet.heads], dtype=np.uint8)
        painted[..., :3] = of_block[owner]
    else:
        painted[..., :3] = rgb(theme.muted)
    buffer = io.BytesIO()
    Image.fromarray(painted).save(buffer, "PNG", compress_level=1)
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode('ascii')}"


def _pool(sizes: NDArray[np.float32], rows: int, columns: int) -> NDArray[np.float32]:
    """The largest in each block; blank only where all of it is."""
    if rows == columns == 1:
        return sizes
    filled = np.where(np.isnan(sizes), -1, sizes)
    at_rows, at_columns = np.arange(0, len(sizes), rows), np.arange(0, sizes.shape[1], columns)
    best = np.maximum.reduceat(np.maximum.reduceat(filled, at_rows, 0), at_columns, 1)
    pooled: NDArray[np.float32] = np.where(best < 0, np.nan, best).astype(np.float32)
    return pooled
