"""One step of generation, position by position: what is computed, and what the cache provides."""

from collections.abc import Sequence
from typing import Literal

import plotly.graph_objects as go

from mha_viz.figures.base import CLEAR, HIDDEN, Spec, Style, hover
from mha_viz.figures.labels import token_labels
from mha_viz.figures.marks import bars, fill, rectangle, squares, stroke
from mha_viz.figures.theme import NORMAL, TextSizes, Theme

State = Literal["computed", "read", "not yet"]

PER_LINE = 24  # at most this many positions, so that a line fits on a phone
MAX_LETTERS = 9  # of a token over its cell
HEADROOM = 3.3  # above the two rows, for the tokens, in cell heights
LINE = HEADROOM + 2.7  # from one line of positions to the next
CELL = 27  # pixels


def cache_figure(
    tokens: Sequence[str],
    with_cache: Sequence[State],
    without: Sequence[State],
    theme: Theme,
    *,
    generated: int,
    first: int = 0,
    sizes: TextSizes = NORMAL,
) -> go.Figure:
    """Two rows of cells, with and without the cache, wrapped after PER_LINE positions.

    `tokens` and the states are those of the positions from `first` on. The position `generated`,
    whose token this step produces, is outlined. Later tokens have no label.
    """
    style, new = Style(theme, sizes), generated - first
    n_lines = _n_lines(len(tokens))
    per_line = -(-len(tokens) // n_lines)
    looks: dict[State, Spec] = {
        "computed": fill(theme.accent),
        "read": fill(theme.sequential[2]),
        "not yet": fill(theme.hairline, 0.35),
    }
    rows = (with_cache, without)
    cells = [_cells(rows, tokens, first, per_line, state) | look for state, look in looks.items()]
    known = [i for i, state in enumerate(without) if state != "not yet" or i == new]
    x, y = _place(new, 0, per_line)
    outline = rectangle(x - 0.5, x + 0.5, y - 0.55, y + 1.55, **stroke(theme.query, 3))
    return style.figure(
        *cells,
        _labels(known, tokens, new, per_line, style),
        margin={"l": 62, "r": 4, "t": 26, "b": 4},
        shapes=[outline],
        annotations=[*_row_names(n_lines, style), *_empty_note(without, new, per_line, style)],
        showlegend=True,
        legend=style.legend(clickable=False) | {"traceorder": "normal"},
        xaxis=HIDDEN | {"range": [-0.6, per_line - 0.4]},
        yaxis=HIDDEN | {"range": [n_lines * LINE - HEADROOM - 0.6, -HEADROOM - 0.6]},
    )


def height(n_positions: int) -> int:
    """The height for this number of positions, in pixels."""
    return round(30 + _n_lines(n_positions) * LINE * CELL)


def _n_lines(n_positions: int) -> int:
    return -(-n_positions // PER_LINE)


def _place(i: int, row: int, per_line: int) -> tuple[float, float]:
    return i % per_line, i // per_line * LINE + row


def _cells(
    rows: tuple[Sequence[State], Sequence[State]],
    tokens: Sequence[str],
    first: int,
    per_line: int,
    state: State,
) -> Spec:
    """The cells of both rows that are in `state`."""
    labels = token_labels(tokens, 16)
    x, y, texts = [], [], []
    for row, (name, states) in enumerate(zip(("with the cache", "without"), rows, strict=True)):
        for i in (i for i, each in enumerate(states) if each == state):
            across, down = _place(i, row, per_line)
            token = "" if state == "not yet" else f", {labels[i]}"
            x.append(across)
            y.append(down)
            texts.append(f"{name}, position {first + i}{token}: {state}")
    return squares(x, y, 0.9, name=state, hovertext=texts) | hover("%{hovertext}")


def _labels(known: list[int], tokens: Sequence[str], new: int, per_line: int, style: Style) -> Spec:
    """Invisible bars over the cells with upright text, which markers cannot have."""
    x, y = zip(*(_place(i, 0, per_line) for i in known), strict=True)
    colours = [style.theme.query if i == new else style.theme.ink for i in known]
    invisible = bars(x, [-HEADROOM] * len(x), 0.9, base=[top - 0.6 for top in y]) | fill(CLEAR)
    text = {
        "text": token_labels([tokens[i] for i in known], MAX_LETTERS),
        "textfont": style.mono() | {"color": colours},
        "textangle": -90,
        "textposition": "inside",
        "insidetextanchor": "start",
        "constraintext": "none",
    }
    return invisible | text | {"hoverinfo": "skip", "showlegend": False}


def _empty_note(without: Sequence[State], new: int, per_line: int, style: Style) -> list[Spec]:
    """Words over the cells after the outlined one, if there are enough of them in its line."""
    x, y = _place(new + 1, 0, per_line)
    n_empty = min(len(without) - new - 1, per_line - new % per_line - 1)
    if n_empty < 4:
        return []
    return [style.note("not generated yet", x - 0.4, y + 0.5, anchor="left middle")]


def _row_names(n_lines: int, style: Style) -> list[Spec]:
    place = {"xref": "paper", "xshift": -6, "font": style.muted(1)}
    return [
        style.note(name, 0, line * LINE + row, anchor="right middle") | place
        for line in range(n_lines)
        for row, name in enumerate(("with", "without"))
    ]
