"""From scores to weights for one query: a row per key, with bars for score, exponential, weight."""

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from mha_viz.figures.base import CLEAR, HIDDEN, Spec, Style, hover
from mha_viz.figures.labels import token_labels
from mha_viz.figures.marks import fill, row_bars
from mha_viz.figures.text import escape, with_minus
from mha_viz.figures.theme import NORMAL, TextSizes, Theme
from mha_viz.tokens import shorten

MAX_LETTERS = 10  # of a token
ROW = 27  # pixels
HEADER = 30  # pixels, for the names of the columns
COLUMNS = ("score", "exp(s − max)", "weight")
SPACE = "\u2002"  # between a label and its bar
GAP = 0.03  # between two columns, as a share of the width


@dataclass(frozen=True, slots=True)
class SoftmaxRow:
    """A key with its score, exponential and weight; `key` is None for several keys in one row."""

    label: str
    key: int | None
    score: float | None
    exp: float
    weight: float
    masked: bool = False


def softmax_steps(
    rows: Sequence[SoftmaxRow], theme: Theme, *, selected: int | None, sizes: TextSizes = NORMAL
) -> go.Figure:
    """The rows from the top down, with the row of the key `selected` in orange.

    Bars of scores start at zero; those of exponentials and weights fill a column at 1. A masked
    key shows its score, and 0 as its exponential and weight. The customdata of a bar is its key.
    """
    style = Style(theme, sizes)
    columns = [_column(number, rows) for number in range(len(COLUMNS))]
    return style.figure(
        *(bars for column in columns for bars in _bars(column, rows, selected, theme)),
        margin={"l": _label_width(rows, sizes), "r": 4, "t": HEADER, "b": 6},
        annotations=[n for column in columns for n in _numbers(column, rows, selected, style)],
        yaxis=style.rows([_label(row, selected, style) for row in rows]),
        **{f"xaxis{column.suffix}": column.axis for column in columns},
    )


def height(n_rows: int) -> int:
    """The height for n rows, in pixels."""
    return HEADER + ROW * n_rows + 6


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of bars: its numbers, and the range of its axis."""

    number: int
    values: tuple[float | None, ...]
    low: float
    high: float

    @property
    def suffix(self) -> str:
        """The number that Plotly appends to the name of its axis."""
        return str(self.number + 1) if self.number else ""

    @property
    def start(self) -> float:
        """The left edge of the column, as a share of the width."""
        return self.number * (1 + GAP) / len(COLUMNS)

    @property
    def axis(self) -> Spec:
        """The x axis of the column."""
        end = self.start + (1 - 2 * GAP) / len(COLUMNS)
        return HIDDEN | {"domain": [self.start, end], "range": [self.low, self.high]}


def _column(number: int, rows: Sequence[SoftmaxRow]) -> _Column:
    if number:
        return _Column(number, tuple(r.exp if number == 1 else r.weight for r in rows), 0.0, 1.0)
    values = tuple(row.score for row in rows)
    scores = [score for score in values if score is not None]
    low, high = min(0.0, *scores), max(0.0, *scores)
    return _Column(number, values, low, high if high > low else low + 1)


def _bars(
    column: _Column, rows: Sequence[SoftmaxRow], selected: int | None, theme: Theme
) -> tuple[Spec, Spec]:
    """The bars, and invisible ones across the column: short bars would be hard to point at."""
    places, axis = list(range(len(rows))), {"xaxis": f"x{column.suffix}"}
    colours = [theme.query if _is(row, selected) else theme.accent for row in rows]
    values = [0.0 if value is None else min(value, column.high) for value in column.values]
    # Pale, since the number is written over it.
    drawn = row_bars(values, places, 0.8, hoverinfo="skip") | fill(colours, 0.32)
    widths, starts = [column.high - column.low] * len(rows), [column.low] * len(rows)
    target = row_bars(widths, places, 1, base=starts, customdata=[[row.key] for row in rows])
    text = {"text": [_hover(row) for row in rows], "textposition": "none"} | hover("%{text}")
    return drawn | axis, target | fill(CLEAR) | text | axis


def _is(row: SoftmaxRow, selected: int | None) -> bool:
    return row.key is not None and row.key == selected


def _hover(row: SoftmaxRow) -> str:
    if row.key is None:
        return f"{escape(row.label)}: weight {row.weight:.4g}"
    name = f"{_token(row)} ({row.key}): score {row.score:.5g}"
    return f"{name}, " + ("masked" if row.masked else f"exp {row.exp:.4g}, weight {row.weight:.4g}")


def _token(row: SoftmaxRow) -> str:
    return token_labels([row.label], MAX_LETTERS)[0]


def _numbers(
    column: _Column, rows: Sequence[SoftmaxRow], selected: int | None, style: Style
) -> list[Spec]:
    """The name of the column above it, and the number of each row over its bar."""
    place = {"xref": "paper", "xshift": 2}
    title = style.note(COLUMNS[column.number], column.start, 1, anchor="left bottom", yref="paper")
    notes = [title | place]
    for i, row in enumerate(rows):
        text, colour = escape(_number(column, i, row)), style.theme.ink
        if _is(row, selected):
            text, colour = f"<b>{text}</b>", style.theme.query
        number = style.note(text, column.start, i, anchor="left middle")
        notes.append(number | place | {"font": style.mono(colour=colour)})
    return notes


def _number(column: _Column, i: int, row: SoftmaxRow) -> str:
    value, is_score = column.values[i], column.number == 0
    if value is None:
        return ""
    if is_score:
        return with_minus(f"{value:.3f}") + (" → −∞" if row.masked else "")
    if row.masked:
        return "0"
    return "<0.0001" if 0 < value < 0.00005 else f"{value:.4f}"


def _label(row: SoftmaxRow, selected: int | None, style: Style) -> str:
    if row.key is None:
        muted = style.theme.muted
        return f'<span style="color:{muted}">{escape(row.label)}{SPACE}</span>'
    text = f"{_token(row)} <sub>{row.key}</sub>{SPACE}"
    return style.selected(text) if _is(row, selected) else text


def _label_width(rows: Sequence[SoftmaxRow], sizes: TextSizes) -> float:
    def letters(row: SoftmaxRow) -> float:
        if row.key is None:
            return len(row.label)
        return len(shorten(row.label, MAX_LETTERS)) + 0.8 * len(str(row.key)) + 1

    return (max(map(letters, rows)) + 1) * 0.6 * (sizes.text + 1) + 10
