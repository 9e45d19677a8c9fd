"""Tokens in a grid, coloured by probability: a column per position, a row per rank or layer."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from mha_viz.figures.base import Spec, Style, hover
from mha_viz.figures.labels import token_labels
from mha_viz.figures.marks import heatmap, line
from mha_viz.figures.scale import root_ticks
from mha_viz.figures.text import escape, text_width
from mha_viz.figures.theme import NORMAL, TextSizes, Theme, colorscale
from mha_viz.trace import Array

MAX_LETTERS = 8  # of a token in a cell
ROW = 27  # pixels
INSET = 0.03  # of an outline in its cell, so that neighbours do not share a line


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """R rows of n cells under the tokens of n positions, `columns`.

    `tokens` are `[R][n]`; `hovers` are too, with one or more lines each. `probabilities` `[R, n]`
    give the colours, and NaN is blank. `outlined` cells have an orange outline, `bold` ones bold
    type. `notes` are rows of text below the cells, each with its name. `first` is the position of
    the first column, and `selected` a position that is highlighted; without `numbered`, columns
    have names alone.
    """

    columns: Sequence[str]
    rows: Sequence[str]
    tokens: Sequence[Sequence[str]]
    probabilities: Array
    hovers: Sequence[Sequence[Sequence[str]]]
    outlined: NDArray[np.bool_]
    bold: NDArray[np.bool_] | None = None
    notes: Sequence[tuple[str, Sequence[str]]] = ()
    first: int = 0
    selected: int | None = None
    numbered: bool = True


def token_grid(grid: Grid, theme: Theme, *, sizes: TextSizes = NORMAL) -> go.Figure:
    """The grid, coloured by the square root of probability from 0 to 1, as weights are."""
    style, n = Style(theme, sizes), len(grid.columns)
    names = [*grid.rows, *(name for name, _ in grid.notes)]
    places = {"side": "top", "range": [-0.5, n - 0.5], "tickvals": list(range(n)), "tickangle": 0}
    header = style.axis(type="linear", ticklabeloverflow="allow", tickfont=style.mono(-1))
    return style.figure(
        _cells(grid, style),
        _outlines(grid.outlined, theme),
        _texts(grid, style),
        margin={"l": text_width(names, sizes.text) + 14, "r": 6, "t": _header(sizes), "b": 4},
        hoverlabel=style.hover_label() | {"align": "left"},
        xaxis=header | places | {"ticktext": _headers(grid, style)},
        yaxis=style.rows([escape(name) for name in names], tickfont=style.muted(), type="linear"),
    )


def height(n_rows: int, n_notes: int = 0, *, sizes: TextSizes = NORMAL) -> int:
    """The height for these numbers of rows of cells and of text, in pixels."""
    return round(_header(sizes) + 4 + (n_rows + n_notes) * (ROW + 2 * (sizes.text - 12)))


def _header(sizes: TextSizes) -> float:
    return 2 * 1.3 * sizes.text + 12


def _headers(grid: Grid, style: Style) -> list[str]:
    """Each token with its position under it."""
    labels = token_labels(grid.columns, MAX_LETTERS)
    if not grid.numbered:
        return labels
    texts = {i: f"{label}<br>{i}" for i, label in enumerate(labels, start=grid.first)}
    return [style.selected(text) if i == grid.selected else text for i, text in texts.items()]


def _cells(grid: Grid, style: Style) -> Spec:
    texts = [["<br>".join(map(escape, lines)) for lines in row] for row in grid.hovers]
    roots, colours = np.sqrt(grid.probabilities), colorscale(style.theme)
    cells = heatmap(roots, 0, 1, colours, customdata=grid.probabilities, hovertext=texts)
    bar = style.colour_bar(*root_ticks(), thickness=10, len=1)
    return cells | hover("%{hovertext}") | {"xgap": 1, "ygap": 1, "colorbar": bar}


def _outlines(outlined: NDArray[np.bool_], theme: Theme) -> Spec:
    """All outlines as one line with gaps: one shape per cell would take Plotly far longer."""
    half = 0.5 - INSET
    corners = np.array([(-half, -half), (half, -half), (half, half), (-half, half), (-half, -half)])
    interrupted = np.vstack([corners, (np.nan, np.nan)])
    rows, columns = np.nonzero(outlined)
    centres = np.stack([columns, rows], axis=1)
    x, y = (centres[:, None] + interrupted).reshape(-1, 2).T
    return line(x, y, theme.query, 2)


def _texts(grid: Grid, style: Style) -> Spec:
    """All tokens and notes, in a colour that is readable on the cell."""
    texts = [*_cell_texts(grid, style.theme), *_note_texts(grid, style.theme)]
    x, y, labels, colours = (list(part) for part in zip(*texts, strict=True))
    font = style.mono(-1) | {"color": colours}
    places = {"type": "scatter", "mode": "text", "x": x, "y": y, "hoverinfo": "skip"}
    return places | {"text": labels, "textfont": font}


def _cell_texts(grid: Grid, theme: Theme) -> Iterator[tuple[int, int, str, str]]:
    strong = np.sqrt(np.nan_to_num(grid.probabilities)) >= theme.ink_flips_at
    for row, tokens in enumerate(grid.tokens):
        for column, text in enumerate(token_labels(tokens, MAX_LETTERS)):
            if grid.bold is not None and grid.bold[row, column]:
                text = f"<b>{text}</b>"
            yield column, row, text, theme.ink_on_strong if strong[row, column] else theme.ink


def _note_texts(grid: Grid, theme: Theme) -> Iterator[tuple[int, int, str, str]]:
    for row, (_, notes) in enumerate(grid.notes):
        colour = theme.ink if row else theme.query
        for column, note in enumerate(token_labels(notes, MAX_LETTERS)):
            yield column, len(grid.rows) + row, note, colour
