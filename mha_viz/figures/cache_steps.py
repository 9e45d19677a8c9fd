"""One step of generation, position by position: what is computed, what is read from the cache."""

from collections.abc import Sequence
from typing import Literal

import plotly.graph_objects as go

from mha_viz.figures.text import literal
from mha_viz.figures.theme import MONO, NORMAL, SANS, Theme, Type
from mha_viz.tokens import shorten

State = Literal["computed", "read", "not yet"]

PER_LINE = 24  # positions side by side at most, so that a phone can show them too
LABEL = 9  # characters of a token
ROOM = 3.3  # over the two rows, for the tokens, in heights of a cell
LINE = ROOM + 2.7  # from one line of positions to the next
CELL = 27  # pixels


def cache_figure(
    tokens: Sequence[str],
    with_cache: Sequence[State],
    without: Sequence[State],
    theme: Theme,
    *,
    made: int,
    first: int = 0,
    sizes: Type = NORMAL,
) -> go.Figure:
    """Two rows of cells, with the cache and without, in lines of at most PER_LINE positions.

    `tokens` and the states belong to the positions from `first` on; `made` is the position whose
    token this step makes, outlined. A token that is not there yet has no name.
    """
    n_lines = _lines(len(tokens))
    wide = -(-len(tokens) // n_lines)
    cells = [
        (i, row, state)
        for row, states in enumerate((with_cache, without))
        for i, state in enumerate(states)
    ]
    fills = {
        "computed": (theme.accent, 1.0),
        "read": (theme.sequential[2], 1.0),
        "not yet": (theme.hairline, 0.35),
    }
    data = [
        _cells(
            [(i, row) for i, row, held in cells if held == state], state, fill, tokens, first, wide
        )
        for state, fill in fills.items()
    ]
    known = [i for i, state in enumerate(without) if state != "not yet" or i + first == made]
    x, y = _place(made - first, 0, wide)
    mark = {
        "type": "rect", "x0": x - 0.5, "x1": x + 0.5, "y0": y - 0.55, "y1": y + 1.55,
        "line": {"color": theme.query, "width": 3},
    }  # fmt: skip
    axis = {"visible": False, "fixedrange": True}
    layout = {
        "template": "none", "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": 62, "r": 4, "t": 26, "b": 4}, "dragmode": False, "barmode": "overlay",
        "bargap": 0, "hovermode": "closest", "font": {"family": SANS, "color": theme.ink},
        "shapes": [mark], "showlegend": True,
        "annotations": [*_rows(n_lines, theme, sizes)],
        "legend": {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "itemclick": False,
                   "itemdoubleclick": False, "traceorder": "normal",
                   "font": {"size": sizes.note + 1, "color": theme.ink}},
        "hoverlabel": {"bgcolor": theme.surface, "bordercolor": theme.query,
                       "font": {"family": MONO, "size": sizes.tick + 1, "color": theme.ink}},
        "xaxis": axis | {"range": [-0.6, wide - 0.4]},
        "yaxis": axis | {"range": [n_lines * LINE - ROOM - 0.6, -ROOM - 0.6]},
    }  # fmt: skip
    return go.Figure(
        data=[*data, _names(known, tokens, made - first, theme, sizes, wide)], layout=layout
    )


def height(n_positions: int) -> int:
    """Pixels for so many positions."""
    return round(30 + _lines(n_positions) * LINE * CELL)


def _lines(n_positions: int) -> int:
    return -(-n_positions // PER_LINE)


def _place(i: int, row: int, wide: int) -> tuple[float, float]:
    return i % wide, i // wide * LINE + row


def _cells(
    places: list[tuple[int, int]],
    state: str,
    fill: tuple[str, float],
    tokens: Sequence[str],
    first: int,
    wide: int,
) -> dict[str, object]:
    at = [_place(i, row, wide) for i, row in places]
    colour, opacity = fill
    ways = ("with the cache", "without")
    return {
        "type": "bar", "name": state, "x": [x for x, _ in at], "y": [0.9] * len(at),
        "base": [y - 0.45 for _, y in at], "width": 0.9,
        "marker": {"color": colour, "opacity": opacity, "line": {"width": 0}},
        "hovertext": [
            f"{ways[row]}, position {first + i}, {literal(shorten(tokens[i], 16))}: {state}"
            if state != "not yet" else f"{ways[row]}, position {first + i}: {state}"
            for i, row in places
        ],
        "hovertemplate": "%{hovertext}<extra></extra>",
    }  # fmt: skip


def _names(
    known: list[int], tokens: Sequence[str], made: int, theme: Theme, sizes: Type, wide: int
) -> dict[str, object]:
    """Invisible bars over the cells; their text is turned, which that of markers cannot be."""
    at = [_place(i, 0, wide) for i in known]
    return {
        "type": "bar", "x": [x for x, _ in at], "y": [-ROOM] * len(at), "width": 0.9,
        "base": [y - 0.6 for _, y in at], "marker": {"color": "rgba(0,0,0,0)"},
        "text": [literal(shorten(tokens[i], LABEL)) for i in known], "textangle": -90,
        "textposition": "inside", "insidetextanchor": "start", "constraintext": "none",
        "textfont": {"size": sizes.tick, "family": MONO,
                     "color": [theme.query if i == made else theme.ink for i in known]},
        "hoverinfo": "skip", "showlegend": False,
    }  # fmt: skip


def _rows(n_lines: int, theme: Theme, sizes: Type) -> list[dict[str, object]]:
    return [
        {"text": text, "xref": "paper", "x": 0, "y": line * LINE + row, "xanchor": "right",
         "yanchor": "middle", "xshift": -6, "showarrow": False,
         "font": {"size": sizes.note + 1, "color": theme.muted}}
        for line in range(n_lines)
        for row, text in enumerate(("with", "without"))
    ]  # fmt: skip
