"""Tokens in a grid, each on its probability: a column is a position, a row a rank or a layer."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from mha_viz.figures.text import literal
from mha_viz.figures.theme import MONO, NORMAL, SANS, Theme, Type, colorscale
from mha_viz.tokens import shorten
from mha_viz.trace import Array

LABEL = 8  # characters of a token in a cell
ROW = 27  # pixels
INSET = 0.03  # of an outline in its cell, so that neighbours do not share a line


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """R rows of n cells under the tokens of n positions.

    `tokens` and `hovers` are `[R][n]`, a hover one or more lines; `probabilities` `[R, n]` are
    drawn, where NaN is blank. `outlined` cells have an orange frame, `bold` ones bold type. `notes`
    are rows of text below the cells, each with its name. `chosen` is a position that stands out.
    """

    columns: Sequence[str]
    rows: Sequence[str]
    tokens: Sequence[Sequence[str]]
    probabilities: Array
    hovers: Sequence[Sequence[Sequence[str]]]
    outlined: NDArray[np.bool_]
    bold: NDArray[np.bool_] | None = None
    notes: Sequence[tuple[str, Sequence[str]]] = ()
    first: int = 0  # position of the first column
    chosen: int | None = None


def token_grid(grid: Grid, theme: Theme, *, sizes: Type = NORMAL) -> go.Figure:
    """The grid, coloured by the square root of the probability from 0 to 1, as weights are."""
    n_rows, n = grid.probabilities.shape
    last = n_rows + len(grid.notes)
    names = [*grid.rows, *(name for name, _ in grid.notes)]
    room = 0.6 * sizes.tick * max(map(len, names)) + 14
    axis = {
        "showgrid": False, "zeroline": False, "ticks": "", "fixedrange": True, "type": "linear",
        "ticklabeloverflow": "allow",
    }  # fmt: skip
    layout = {
        "template": "none", "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": room, "r": 6, "t": _header(sizes), "b": 4}, "dragmode": False,
        "font": {"family": SANS, "color": theme.ink}, "showlegend": False,
        "hoverlabel": {"bgcolor": theme.surface, "bordercolor": theme.query, "align": "left",
                       "font": {"family": MONO, "size": sizes.tick + 1, "color": theme.ink}},
        "xaxis": axis | {
            "side": "top", "range": [-0.5, n - 0.5], "tickangle": 0,
            "tickvals": list(range(n)), "ticktext": _headers(grid, theme),
            "tickfont": {"size": sizes.tick - 1, "family": MONO, "color": theme.ink},
        },
        "yaxis": axis | {
            "range": [last - 0.5, -0.5], "tickvals": list(range(last)),
            "ticktext": [literal(name) for name in names],
            "tickfont": {"size": sizes.tick, "color": theme.muted},
        },
    }  # fmt: skip
    data = [
        _cells(grid, theme, sizes), _outlines(grid.outlined, theme), _texts(grid, theme, sizes),
    ]  # fmt: skip
    return go.Figure(data=data, layout=layout)


def height(n_rows: int, n_notes: int = 0, *, sizes: Type = NORMAL) -> int:
    """Pixels for so many rows of cells and of text."""
    return round(_header(sizes) + 4 + (n_rows + n_notes) * (ROW + 2 * (sizes.tick - 12)))


def _header(sizes: Type) -> float:
    return 2 * 1.3 * sizes.tick + 12


def _headers(grid: Grid, theme: Theme) -> list[str]:
    """A token and its position; the chosen one stands out."""
    found = []
    for column, token in enumerate(grid.columns):
        text = f"{literal(shorten(token, LABEL))}<br>{grid.first + column}"
        if grid.first + column == grid.chosen:
            text = f'<b><span style="color:{theme.query}">{text}</span></b>'
        found.append(text)
    return found


def _cells(grid: Grid, theme: Theme, sizes: Type) -> dict[str, object]:
    marks = [0, 0.05, 0.2, 0.5, 1]
    return {
        "type": "heatmap", "z": np.sqrt(grid.probabilities), "zmin": 0, "zmax": 1,
        "customdata": grid.probabilities,
        "colorscale": colorscale(theme), "xgap": 1, "ygap": 1, "hoverongaps": False,
        "hovertext": [["<br>".join(map(literal, cell)) for cell in row] for row in grid.hovers],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "colorbar": {
            "tickvals": [p**0.5 for p in marks], "ticktext": ["0", ".05", ".2", ".5", "1"],
            "outlinewidth": 0, "ticks": "", "thickness": 10, "len": 1,
            "tickfont": {"size": sizes.tick - 1, "color": theme.muted},
        },
    }  # fmt: skip


def _outlines(outlined: NDArray[np.bool_], theme: Theme) -> dict[str, object]:
    """All frames as one line with gaps: a shape each would take Plotly far longer."""
    half = 0.5 - INSET
    across, down = (-half, half, half, -half, -half), (-half, -half, half, half, -half)
    x: list[float | None] = []
    y: list[float | None] = []
    for row, column in np.argwhere(outlined).tolist():
        x += [*(column + d for d in across), None]
        y += [*(row + d for d in down), None]
    return {
        "type": "scatter", "mode": "lines", "x": x, "y": y, "hoverinfo": "skip",
        "line": {"color": theme.query, "width": 2},
    }  # fmt: skip


def _texts(grid: Grid, theme: Theme, sizes: Type) -> dict[str, object]:
    """All tokens and notes, in an ink that can be read on the cell."""
    cells = [*_cell_texts(grid, theme), *_note_texts(grid, theme)]
    x, y, texts, colours = (list(part) for part in zip(*cells, strict=True))
    return {
        "type": "scatter", "mode": "text", "x": x, "y": y, "text": texts, "hoverinfo": "skip",
        "textfont": {"family": MONO, "size": sizes.tick - 1, "color": colours},
    }  # fmt: skip


def _cell_texts(grid: Grid, theme: Theme) -> Iterator[tuple[int, int, str, str]]:
    strong = np.sqrt(np.nan_to_num(grid.probabilities)) >= theme.ink_flips_at
    for row, tokens in enumerate(grid.tokens):
        for column, token in enumerate(tokens):
            text = literal(shorten(token, LABEL))
            if grid.bold is not None and grid.bold[row, column]:
                text = f"<b>{text}</b>"
            yield column, row, text, theme.ink_on_strong if strong[row, column] else theme.ink


def _note_texts(grid: Grid, theme: Theme) -> Iterator[tuple[int, int, str, str]]:
    for row, (_, notes) in enumerate(grid.notes):
        colour = theme.ink if row else theme.query
        for column, note in enumerate(notes):
            yield column, len(grid.rows) + row, literal(shorten(note, LABEL)), colour
