"""Tokens in a grid, each on its probability: a column is a position, a row a rank or a layer."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from mha_viz.figures.scale import ticks
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

    `tokens` and `hovers` are `[R][n]`; `probabilities` `[R, n]` are drawn, where NaN is blank.
    `outlined` cells have an orange frame, `bold` ones bold type. `notes` are rows of text below
    the cells, each with its name; `chosen` is the column that stands out, if any.
    """

    columns: Sequence[str]
    rows: Sequence[str]
    tokens: Sequence[Sequence[str]]
    probabilities: Array
    hovers: Sequence[Sequence[str]]
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
    data = [_cells(grid, theme, sizes), _outlines(grid.outlined, theme)]
    if grid.notes:
        data.append(_notes(grid, n_rows, theme, sizes))
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
    def shown(row: int, column: int) -> str:
        text = literal(shorten(grid.tokens[row][column], LABEL))
        heavy = grid.bold is not None and grid.bold[row, column]
        return f"<b>{text}</b>" if heavy else text

    n_rows, n = grid.probabilities.shape
    at, labels, _ = ticks("sqrt")
    return {
        "type": "heatmap", "z": np.sqrt(grid.probabilities), "zmin": 0, "zmax": 1,
        "colorscale": colorscale(theme), "xgap": 1, "ygap": 1, "hoverongaps": False,
        "text": [[shown(r, c) for c in range(n)] for r in range(n_rows)],
        "texttemplate": "%{text}", "textfont": {"family": MONO, "size": sizes.tick - 1},
        "hovertext": [list(row) for row in grid.hovers],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "colorbar": {
            "title": {"text": "probability (colour = √)", "side": "right",
                      "font": {"size": sizes.note, "color": theme.muted}},
            "tickvals": at, "ticktext": labels, "outlinewidth": 0, "ticks": "", "thickness": 10,
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


def _notes(grid: Grid, n_rows: int, theme: Theme, sizes: Type) -> dict[str, object]:
    cells = [
        (column, n_rows + row, text, theme.query if row == 0 else theme.ink)
        for row, (_, texts) in enumerate(grid.notes)
        for column, text in enumerate(texts)
    ]
    x, y, texts, colours = (list(part) for part in zip(*cells, strict=True))
    return {
        "type": "scatter", "mode": "text", "x": x, "y": y, "hoverinfo": "skip",
        "text": [literal(shorten(str(text), LABEL)) for text in texts],
        "textfont": {"family": MONO, "size": sizes.tick - 1, "color": colours},
    }  # fmt: skip
