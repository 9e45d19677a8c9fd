"""Several matrices in one picture: cells between given edges, in the colours of heads or of signs.

A cell of a large matrix stands for a block of numbers and shows the one of largest magnitude; the
hover names that number, its row and its column.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mha_viz.figures.base import Spec, Style, hover
from mha_viz.figures.marks import rectangle, stroke
from mha_viz.figures.shapes import FAINTEST, head_colours
from mha_viz.figures.text import escape
from mha_viz.figures.theme import ColourScale, Theme, diverging_scale, rgb
from mha_viz.trace import Array

Edges = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """A matrix as cells: the number of each, with its row and its column in the whole matrix."""

    values: Array  # [r, c]; NaN is blank
    places: Array  # [r, c, 2]

    def hover(self, name: str) -> Spec:
        """The number itself, where it is asked for."""
        text = f"{escape(name)}[%{{customdata[1]}}, %{{customdata[2]}}] = %{{customdata[0]:.4f}}"
        numbers = np.concatenate([self.values[..., None], self.places], axis=-1)
        return hover(text) | {"customdata": numbers.astype(np.float32)}


def cells_of(values: Array, most_rows: int, most_columns: int, *, first_column: int = 0) -> Cells:
    """At most that many rows and columns of cells; each shows the largest number of its block.

    `first_column` is the number of the first column in the whole matrix.
    """
    n, m = values.shape
    rows, columns = max(1, -(-n // most_rows)), max(1, -(-m // most_columns))
    r, c = -(-n // rows), -(-m // columns)
    padded = np.full((r * rows, c * columns), np.nan, dtype=np.float32)
    padded[:n, :m] = values
    blocks = padded.reshape(r, rows, c, columns).swapaxes(1, 2).reshape(r, c, -1)
    at = np.where(np.isnan(blocks), -1, np.abs(blocks)).argmax(axis=-1)
    row = np.arange(r)[:, None] * rows + at // columns
    column = np.arange(c) * columns + at % columns + first_column
    largest = np.take_along_axis(blocks, at[..., None], axis=-1)[..., 0]
    return Cells(largest, np.stack([row, column], axis=-1).astype(np.float32))


def between(low: float, high: float, n: int) -> Edges:
    """The edges of n equal cells."""
    return np.linspace(low, high, n + 1)


def signed_cells(cells: Cells, x: Edges, y: Edges, top: float, theme: Theme, name: str) -> Spec:
    """Cells from blue at -top to orange at top; x and y are their edges."""
    return _trace(cells, cells.values, x, y, (-top, top), diverging_scale(theme), name)


def head_cells(
    blocks: Sequence[Cells], owners: Sequence[int], x: Sequence[Edges], y: Edges, theme: Theme,
    *, top: float, name: str,
) -> Spec:  # fmt: skip
    """Blocks of columns, each in the colour of the head that owns it; stronger: larger magnitude.

    `x` holds the edges of each block. `name` names the matrix in the hover.
    """
    values: list[Array] = []
    places: list[Array] = []
    edges: list[Edges] = []
    shades: list[Array] = []
    n = max(owners, default=0) + 1
    rows = len(blocks[0].values)
    blank = np.full((rows, 1), np.nan, dtype=np.float32)
    for block, owner, at in zip(blocks, owners, x, strict=True):
        if edges:  # between two blocks lies a cell that stays blank
            values, shades = [*values, blank], [*shades, blank]
            places.append(np.zeros((rows, 1, 2), dtype=np.float32))
        share = np.sqrt(np.clip(np.abs(block.values) / top, 0, 1))
        shades.append((owner + 0.998 * share).astype(np.float32))
        values.append(block.values)
        places.append(block.places)
        edges.append(at)
    joined = Cells(np.concatenate(values, axis=1), np.concatenate(places, axis=1))
    scale = _scale_of_heads(theme, n)
    z = np.concatenate(shades, axis=1)
    return _trace(joined, z, np.concatenate(edges), y, (0, n), scale, name)


def rings(
    x: tuple[float, float], y: tuple[float, float], colour: str, theme: Theme, width: float = 2
) -> list[Spec]:
    """A ring around a part of a picture, on a halo in the colour of the page."""
    around = rectangle(*x, *y)
    return [around | stroke(theme.page, width + 2), around | stroke(colour, width)]


def labelled_rows(
    labels: Sequence[str], chosen: int, top: float, row: float, style: Style, **more: Any
) -> Spec:
    """A y axis in pixels with the labels of rows that begin at `top` and are `row` pixels high.

    Where rows are low, only every k-th has a label, and the chosen one. Labels must be escaped.
    """
    n = len(labels)
    every = max(1, int(np.ceil((style.sizes.text + 3) / row)))
    at = [t for t in range(n) if t == chosen or not (t % every or 0 < abs(t - chosen) < every)]
    texts = [style.selected(labels[t]) if t == chosen else labels[t] for t in at]
    ticks = {"tickvals": [top + row * (t + 0.5) for t in at], "ticktext": texts}
    ticks |= {"ticklabelstandoff": 4}
    return style.axis(ticklabeloverflow="allow", tickfont=style.mono(), **more) | ticks


def magnitude(values: Array) -> float:
    """The top of a colour scale: nearly the largest magnitude, so that no number dominates."""
    known = np.abs(values[np.isfinite(values)])
    return float(np.quantile(known, 0.995)) or 1.0 if known.size else 1.0


def _scale_of_heads(theme: Theme, n: int) -> ColourScale:
    """A scale in n parts; each runs from faint to the colour of one head."""
    page = np.array(rgb(theme.page))
    scale: ColourScale = []
    for head, colour in enumerate(head_colours(theme, n)):
        faint = np.rint(page + FAINTEST * (np.array(rgb(colour)) - page)).astype(int)
        scale.append((head / n, "#{:02X}{:02X}{:02X}".format(*faint)))
        scale.append(((head + 0.999) / n if head + 1 < n else 1.0, colour))
    return scale


def _trace(
    cells: Cells,
    z: Array,
    x: Edges,
    y: Edges,
    limits: tuple[float, float],
    colours: ColourScale,
    name: str,
) -> Spec:
    low, high = limits
    scale = {"zmin": low, "zmax": high, "colorscale": colours, "showscale": False}
    place = {"x": x, "y": y, "hoverongaps": False}
    return {"type": "heatmap", "z": z} | scale | place | cells.hover(name)
