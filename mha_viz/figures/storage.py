"""The memory layout of a tensor: its numbers by index, and the same numbers on a tape of memory.

A number keeps its name in both, and when it is copied, so that it can be followed.
"""

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from mha_viz.figures.base import HIDDEN, Spec, Style, hover
from mha_viz.figures.marks import clickable, fill, frame, inside, rectangle, squares, stroke
from mha_viz.figures.shapes import head_colours
from mha_viz.figures.theme import NORMAL, TextSizes, Theme

CELL = 0.92  # width and height, in units
ROW = 1.22  # from one row of the tape to the next
BAND = 1.9  # rows between the tensor and a tape, for the title
OTHERS = 2.2  # width of the block for k and of that for v, which are not drawn number by number
LEFT = 2.3  # units left of the cells, for addresses
OPACITY = 0.35

Numbers = NDArray[np.float64] | NDArray[np.int64]


def storage_figure(
    cells: NDArray[np.int64],
    tape: NDArray[np.int64],
    axes: tuple[str, ...],
    theme: Theme,
    *,
    selected: tuple[int, int, int],
    before: NDArray[np.int64] | None = None,
    sizes: TextSizes = NORMAL,
) -> go.Figure:
    """A cell for each of `cells` `[H, T, d_h]`, by index and, below, by address on the `tape`.

    `cells` holds addresses; `tape` the name of the number at each address, or -1 for what belongs
    to k or v. `before` is the tape that was copied, if there is one; it is drawn in between.
    `selected` (head, position, element) is outlined everywhere. The customdata of a cell is
    [head, position, element, address]. If `axes` start with H, the heads are drawn apart;
    otherwise those of a position share a row.
    """
    style, (H, T, d_h) = Style(theme, sizes), cells.shape
    indices = np.stack([axis.ravel() for axis in np.indices(cells.shape)], axis=1)
    head, position, element = indices.T
    step = d_h + (1.0 if axes[0] == "H" else 0.35 if len(axes) > 2 else 0.0)
    x, y = head * step + element, position.astype(float)
    at = int(np.ravel_multi_index(selected, cells.shape))
    traces = [_cells(x, y, cells.ravel(), tape, indices, style)]
    shapes = [*_sheets(cells.shape, step, axes, style), frame(x[at], y[at], theme.query, 0.48)]
    notes = [_title("by index", -0.75, style)]
    top, right = T + BAND, max(H * step, float(H * d_h))
    tapes = [(tape, "in memory")]
    if before is not None:
        tapes = [(before, "the tape of z before"), (tape, "the new tape, where merge copied it")]
    for names, title in tapes:
        lies = _Tape(names, cells.shape, top)
        addresses = np.argsort(names, kind="stable")[len(names) - cells.size :]
        order = _by_name(names[addresses], cells.shape)
        tape_x, tape_y = lies.place(addresses)
        drawn = np.argsort(addresses)
        traces.append(
            _cells(
                tape_x[drawn],
                tape_y[drawn],
                addresses[drawn],
                names,
                order[drawn],
                style,
            )
        )
        chosen = int(np.flatnonzero((order == selected).all(axis=1))[0])
        shapes.append(frame(tape_x[chosen], tape_y[chosen], theme.query, 0.48))
        notes += [_title(title, top - 0.85, style), *lies.labels(style)]
        if names is tape:
            notes += _jumps(cells, lies, selected, axes, style)
        traces += lies.others(style)
        right, top = max(right, lies.right), lies.bottom + BAND
    return style.figure(
        *traces,
        margin={"l": 4, "r": 4, "t": 4, "b": 4},
        clickmode="event+select",
        annotations=notes,
        shapes=shapes,
        xaxis=_axis(-LEFT, right - 0.3, "left"),
        yaxis=_axis(top - BAND, -1.3, "top") | {"scaleanchor": "x"},
    )


def _sheets(shape: tuple[int, ...], step: float, axes: tuple[str, ...], style: Style) -> list[Spec]:
    """The outline of each part along the first of three axes: trays of tokens, sheets of heads."""
    H, T, d_h = shape
    if len(axes) < 3:
        return []
    edge = stroke(style.theme.control, 1)
    if axes[0] == "H":
        return [
            rectangle(step * h - 0.58, step * h + d_h - 0.42, -0.56, T - 0.44) | edge
            for h in range(H)
        ]
    right = step * (H - 1) + d_h - 0.42
    return [rectangle(-0.58, right, t - 0.49, t + 0.49) | edge for t in range(T)]


class _Tape:
    """A tape in rows: one a token where the numbers lie token by token, otherwise one a head."""

    def __init__(self, names: NDArray[np.int64], shape: tuple[int, ...], top: float) -> None:
        H, T, _ = shape
        known = names[names >= 0]
        self.rows = T if (np.diff(known) > 0).all() else H
        self.length = len(names) // self.rows
        self.known = len(known) // self.rows  # numbers of a row that are drawn
        self.top = top

    @property
    def right(self) -> float:
        """The right edge, with the blocks of k and v."""
        return self.known + (2 * OTHERS if self.length > self.known else 0)

    @property
    def bottom(self) -> float:
        """The lower edge."""
        return self.top + self.rows * ROW

    def place(self, addresses: NDArray[np.int64]) -> tuple[Numbers, Numbers]:
        """Where the numbers at these addresses are drawn."""
        rows = self.top + ROW * (addresses // self.length).astype(float)
        return addresses % self.length, rows

    def labels(self, style: Style) -> list[Spec]:
        """The address of the first number of each row."""
        font = style.mono(0, style.theme.muted)
        return [
            style.note(
                f"{row * self.length}:",
                -0.7,
                self.top + ROW * row,
                anchor="right middle",
                font=font,
            )
            for row in range(self.rows)
        ]

    def others(self, style: Style) -> list[Spec]:
        """The blocks of k and v in each row, which lie between the rows of q."""
        if self.length == self.known:
            return []
        n = (self.length - self.known) // 2
        middles = [self.known - 0.5 + OTHERS * (i + 0.5) for i in range(2)]
        rows = np.repeat(np.arange(self.rows), 2)
        x, y = np.tile(middles, self.rows), self.top + ROW * rows
        names = [f"{part}, {n}" for part in ("k", "v")] * self.rows
        boxes: Spec = {"type": "bar", "x": x, "y": np.full(len(x), CELL), "base": y - CELL / 2}
        boxes |= {"width": OTHERS - 0.1, "hoverinfo": "skip"}
        return [boxes | fill(style.theme.control, 0.25) | inside(names, style.muted())]


def _by_name(names: NDArray[np.int64], shape: tuple[int, ...]) -> NDArray[np.int64]:
    """The head, position and element of each name: it counts positions, heads, elements."""
    H, _, d_h = shape
    position, rest = np.divmod(names, H * d_h)
    return np.stack([rest // d_h, position, rest % d_h], axis=1)


def _jumps(
    cells: NDArray[np.int64],
    tape: _Tape,
    selected: tuple[int, int, int],
    axes: tuple[str, ...],
    style: Style,
) -> list[Spec]:
    """Arrows on the tape from the selected number to the next position and to the next head."""
    arrows = []
    x, y = (float(v[0]) for v in tape.place(cells[selected][None]))
    for axis in (0, 1):
        following = list(selected)
        following[axis] += 1
        if following[axis] >= cells.shape[axis] or (axis == 0 and "H" not in axes):
            continue
        end_x, end_y = (float(v[0]) for v in tape.place(cells[tuple(following)][None]))
        start, end = (x, y + 0.4), (end_x, end_y - 0.4)
        if end_y == y:  # in the same row of the tape
            start, end = (x + 0.46, y + 0.58), (end_x, y + 0.58)
        arrow: Spec = {"x": end[0], "y": end[1], "ax": start[0], "ay": start[1], "text": ""}
        places = {"xref": "x", "yref": "y", "axref": "x", "ayref": "y", "showarrow": True}
        looks = {"arrowhead": 2, "arrowwidth": 2, "arrowcolor": style.theme.query}
        arrows.append(arrow | places | looks)
    return arrows


def _axis(first: float, last: float, toward: str) -> Spec:
    return HIDDEN | {"range": [first, last], "constrain": "domain", "constraintoward": toward}


def _cells(
    x: Numbers,
    y: Numbers,
    addresses: NDArray[np.int64],
    names: NDArray[np.int64],
    indices: NDArray[np.int64],
    style: Style,
) -> Spec:
    """A cell with the name of its number, in the colour of its head."""
    heads = indices[:, 0]
    colours = np.array(head_colours(style.theme, int(heads.max()) + 1))[heads].tolist()
    font = style.mono() | {"size": style.sizes.cell - 1}
    text = (
        "number %{text}: head %{customdata[0]}, position %{customdata[1]}, element "
        "%{customdata[2]}<br>at address %{customdata[3]}"
    )
    numbers = np.concatenate([indices, addresses[:, None]], axis=1).tolist()
    return (
        squares(x, y, CELL, customdata=numbers)
        | fill(colours, OPACITY)
        | clickable(OPACITY)
        | inside([str(name) for name in names[addresses]], font)
        | hover(text)
    )


def _title(text: str, y: float, style: Style) -> Spec:
    return style.note(text, -0.5, y, anchor="left middle", font=style.muted(1))
