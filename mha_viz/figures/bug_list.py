"""The loss of a model with each of several bugs: a list of bars that can be clicked."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from mha_viz.figures.base import HIDDEN, Spec, Style
from mha_viz.figures.marks import clickable, fill, rectangle, row_bars, stroke
from mha_viz.figures.text import escape, with_minus
from mha_viz.figures.theme import NORMAL, TextSizes, Theme

NAMES, NUMBERS = 0.36, 0.30  # shares of the width, left and right of the bars
NOTABLE = 0.01  # nats; a smaller difference between the two losses is not drawn


@dataclass(frozen=True, slots=True)
class BugLoss:
    """The losses of one bug, in nats; NaN where there is none."""

    name: str
    whole: float  # the text read whole
    writing: float = math.nan  # one token at a time


def bug_list(
    bugs: Sequence[BugLoss],
    right: float,
    uniform: float,
    theme: Theme,
    *,
    selected: str,
    sizes: TextSizes = NORMAL,
) -> go.Figure:
    """A row for each bug, in the order given, below a row for the loss without one, `right`.

    A bar is the loss read whole; a diamond, drawn where it differs by more than NOTABLE, the loss
    one token at a time. Lines mark `right` and `uniform`, the loss of uniform guessing. A click on
    a row gives the index of its bug as `customdata`.
    """
    style = Style(theme, sizes)
    losses = [loss for bug in bugs for loss in (bug.whole, bug.writing) if not math.isnan(loss)]
    unit = max([right, uniform, *losses]) / (1 - NAMES - NUMBERS)  # the width of the figure
    names = [bug.name for bug in bugs]
    at = names.index(selected)
    notes = [_name("without a bug", 0, unit, style, bold=True), _number(right, 0, unit, style)]
    for row, bug in enumerate(bugs, 1):
        notes += _notes(bug, row, right, unit, style, bold=bug.name == selected)
    return style.figure(
        _bars(bugs, right, at, theme),
        *_diamonds(bugs, theme),
        _rows(bugs, unit),
        margin={"l": 0, "r": 0, "t": 2, "b": 1.9 * sizes.text},
        shapes=[_frame(at + 1, unit, theme), *_lines(right, uniform, len(bugs), theme)],
        annotations=[*notes, *_foot(right, uniform, unit, style)],
        clickmode="event+select",
        xaxis=HIDDEN | {"range": [-NAMES * unit, (1 - NAMES) * unit]},
        yaxis=HIDDEN | {"range": [len(bugs) + 0.5, -0.5]},
    )


def _bars(bugs: Sequence[BugLoss], right: float, at: int, theme: Theme) -> Spec:
    colours = [theme.accent if i == at else theme.sequential[4] for i in range(len(bugs))]
    values = [right, *(bug.whole for bug in bugs)]
    drawn = fill([theme.control, *colours])
    return row_bars(values, list(range(len(values))), 0.52, hoverinfo="skip") | drawn


def _diamonds(bugs: Sequence[BugLoss], theme: Theme) -> list[Spec]:
    """A diamond at the loss one token at a time, and a line to it from the end of the bar."""
    seen = [(i, b) for i, b in enumerate(bugs, 1) if abs(b.writing - b.whole) > NOTABLE]
    if not seen:
        return []
    x = [value for _, bug in seen for value in (bug.whole, bug.writing, None)]
    y = [value for i, _ in seen for value in (i, i, None)]
    line = {"type": "scatter", "mode": "lines", "line": {"color": theme.warn, "width": 2}}
    edge = {"color": theme.page, "width": 1}
    marker = {"symbol": "diamond", "size": 12, "color": theme.warn, "line": edge}
    points = {"type": "scatter", "mode": "markers", "marker": marker, "hoverinfo": "skip"}
    ends = {"x": [bug.writing for _, bug in seen], "y": [i for i, _ in seen]}
    return [line | {"x": x, "y": y, "hoverinfo": "skip"}, points | ends]


def _rows(bugs: Sequence[BugLoss], unit: float) -> Spec:
    """Invisible bars as wide as the figure, which take the clicks."""
    texts = [[i, escape(bug.name), _words(bug)] for i, bug in enumerate(bugs)]
    hover = {"hovertemplate": "%{customdata[1]}<br>%{customdata[2]}<extra></extra>"}
    wide = row_bars([unit] * len(bugs), list(range(1, len(bugs) + 1)), 1, base=-NAMES * unit)
    return wide | fill("#000000", 0) | clickable(0) | hover | {"customdata": texts}


def _words(bug: BugLoss) -> str:
    if math.isnan(bug.whole):
        return "this model cannot run with it"
    apart = "" if math.isnan(bug.writing) else f"<br>one token at a time: {bug.writing:.3f}"
    return f"read whole: {bug.whole:.3f}{apart}"


def _notes(
    bug: BugLoss, row: int, right: float, unit: float, style: Style, *, bold: bool
) -> list[Spec]:
    name = _name(bug.name, row, unit, style, bold=bold)
    if math.isnan(bug.whole):
        return [name, style.note("an error", 0.01 * unit, row, anchor="left middle")]
    change = bug.whole - right
    theme = style.theme
    colour = theme.warn if change < 0 else theme.bad
    text = with_minus(f"{change:+.2f}")
    end = style.note(text, (1 - NAMES - 0.01) * unit, row, anchor="right middle")
    return [name, _number(bug.whole, row, unit, style), end | {"font": style.mono(0, colour)}]


def _name(name: str, row: int, unit: float, style: Style, *, bold: bool) -> Spec:
    text = style.selected(escape(name)) if bold and row else escape(name)
    text = f"<b>{text}</b>" if bold and not row else text
    return style.note(text, -0.015 * unit, row, anchor="right middle", font=style.ink(1))


def _number(loss: float, row: int, unit: float, style: Style) -> Spec:
    x = (1 - NAMES - 0.145) * unit
    return style.note(f"{loss:.3f}", x, row, anchor="right middle", font=style.mono(1))


def _frame(row: int, unit: float, theme: Theme) -> Spec:
    edges = rectangle(-NAMES * unit * 0.995, (1 - NAMES) * unit * 0.995, row - 0.48, row + 0.48)
    return edges | stroke(theme.query, 2) | {"fillcolor": theme.query_fill, "layer": "below"}


def _lines(right: float, uniform: float, n: int, theme: Theme) -> list[Spec]:
    line = {"type": "line", "y0": -0.4, "y1": n + 0.5}
    return [
        line | {"x0": right, "x1": right} | stroke(theme.ink, 1.5),
        line | {"x0": uniform, "x1": uniform} | stroke(theme.control, 1.5, "dot"),
    ]


def _foot(right: float, uniform: float, unit: float, style: Style) -> list[Spec]:
    """The names of the two lines under them, apart from each other."""
    anchors = ("right", "left") if right < uniform else ("left", "right")
    texts = (f"right {right:.3f}", f"uniform guess {uniform:.3f}")
    half = 0.03 * unit
    return [
        style.note(text, x + (half if anchor == "right" else -half), 0, anchor=f"{anchor} top")
        | {"yref": "paper", "yshift": -2}
        for text, x, anchor in zip(texts, (right, uniform), anchors, strict=True)
    ]
