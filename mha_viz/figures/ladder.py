"""From scores to weights for one query: three columns of bars, a rung a key."""

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from mha_viz.figures.text import literal
from mha_viz.figures.theme import MONO, NORMAL, SANS, Theme, Type
from mha_viz.tokens import shorten

LABEL = 10
RUNG = 27  # pixels
ABOVE = 30  # pixels, for the names of the columns
COLUMNS = ("score", "exp(s − max)", "weight")
SPACE = "\u2002"  # between a label and its bar
GAP = 0.03  # of the width, between two columns


@dataclass(frozen=True, slots=True)
class Rung:
    """A key: its score, exponential and weight; `key` is None for several keys in one rung."""

    label: str
    key: int | None
    score: float | None
    exp: float
    weight: float
    masked: bool = False


def ladder_height(n_rungs: int) -> int:
    """Pixels for so many rungs."""
    return ABOVE + RUNG * n_rungs + 6


def ladder(
    rungs: Sequence[Rung], theme: Theme, *, chosen: int | None, sizes: Type = NORMAL
) -> go.Figure:
    """The rungs from the top down, that of the key `chosen` in orange.

    Bars of scores start at zero; those of exponentials and of weights reach across a column at 1.
    A masked key keeps its score, with its exponential and its weight at 0. The customdata of a bar
    is its key.
    """
    data: list[dict[str, object]] = []
    notes: list[dict[str, object]] = []
    axes: dict[str, object] = {}
    width = (1 - 2 * GAP) / 3
    for number, name in enumerate(COLUMNS):
        column = _column(number, rungs, number * (width + GAP))
        axes[f"xaxis{column.suffix}"] = {
            "domain": [column.start, column.start + width], "range": [column.low, column.high],
            "visible": False, "fixedrange": True,
        }  # fmt: skip
        data += [_bars(column, rungs, chosen, theme), _target(column, rungs)]
        notes.append(_title(name, column, theme, sizes))
        notes += [
            _number(column, row, rungs[row], chosen, theme, sizes) for row in range(len(rungs))
        ]
    layout = {
        "template": "none", "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": _room(rungs, sizes), "r": 4, "t": ABOVE, "b": 6}, "dragmode": False,
        "font": {"family": SANS, "color": theme.ink}, "barmode": "overlay", "bargap": 0,
        "showlegend": False, "hovermode": "closest", "annotations": notes, **axes,
        "hoverlabel": {"bgcolor": theme.surface, "bordercolor": theme.query,
                       "font": {"family": MONO, "size": sizes.tick + 1, "color": theme.ink}},
        "yaxis": {
            "range": [len(rungs) - 0.5, -0.5], "fixedrange": True, "showgrid": False, "ticks": "",
            "zeroline": False, "tickvals": list(range(len(rungs))), "ticklabeloverflow": "allow",
            "ticktext": [_label(r, chosen, theme) for r in rungs],
            "tickfont": {"size": sizes.tick + 1, "family": MONO, "color": theme.ink},
        },
    }  # fmt: skip
    return go.Figure(data=data, layout=layout)


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of bars: its numbers, where it starts, and the range of its axis."""

    number: int
    values: tuple[float | None, ...]
    start: float
    low: float
    high: float

    @property
    def suffix(self) -> str:
        """How Plotly names its axis."""
        return str(self.number + 1) if self.number else ""


def _column(number: int, rungs: Sequence[Rung], start: float) -> _Column:
    if number:
        values = tuple(r.exp if number == 1 else r.weight for r in rungs)
        return _Column(number, values, start, 0.0, 1.0)
    scores = tuple(r.score for r in rungs)
    there = [s for s in scores if s is not None]
    low, high = min(0.0, *there), max(0.0, *there)
    return _Column(number, scores, start, low, high if high > low else low + 1)


def _bars(
    column: _Column, rungs: Sequence[Rung], chosen: int | None, theme: Theme
) -> dict[str, object]:
    tints = [theme.query if _is(r, chosen) else theme.accent for r in rungs]
    return {
        "type": "bar", "orientation": "h", "y": list(range(len(rungs))), "width": 0.8,
        "x": [0.0 if v is None else min(v, column.high) for v in column.values],
        "xaxis": f"x{column.suffix}", "hoverinfo": "skip",
        # Pale, since the number stands on it.
        "marker": {"color": tints, "opacity": 0.32, "line": {"width": 0}},
    }  # fmt: skip


def _target(column: _Column, rungs: Sequence[Rung]) -> dict[str, object]:
    """Invisible bars across the column: a short bar is no smaller to point at."""
    n = len(rungs)
    return {
        "type": "bar", "orientation": "h", "y": list(range(n)), "width": 1,
        "x": [column.high - column.low] * n, "base": [column.low] * n,
        "xaxis": f"x{column.suffix}", "customdata": [[r.key] for r in rungs],
        "marker": {"color": "rgba(0,0,0,0)", "line": {"width": 0}},
        "text": [_hover(r) for r in rungs], "textposition": "none",
        "hovertemplate": "%{text}<extra></extra>",
    }  # fmt: skip


def _is(rung: Rung, chosen: int | None) -> bool:
    return rung.key is not None and rung.key == chosen


def _hover(rung: Rung) -> str:
    if rung.key is None:
        return f"{rung.label}: weight {rung.weight:.6g}"
    name = f"{literal(shorten(rung.label, LABEL))} ({rung.key})"
    if rung.masked:
        return f"{name}: score {rung.score:.6g}, masked"
    return f"{name}: score {rung.score:.6g}, exp {rung.exp:.6g}, weight {rung.weight:.6g}"


def _text(value: float | None, rung: Rung, column: int) -> str:
    if value is None:
        return ""
    if rung.masked:
        return f"{value:.3f} → −∞".replace("-", "−") if column == 0 else "0"
    if column == 0:
        return f"{value:.3f}".replace("-", "−")
    return "<0.0001" if 0 < value < 0.00005 else f"{value:.4f}"


def _title(name: str, column: _Column, theme: Theme, sizes: Type) -> dict[str, object]:
    return {
        "text": name, "xref": "paper", "x": column.start, "xanchor": "left", "xshift": 2,
        "yref": "paper", "y": 1, "yanchor": "bottom", "showarrow": False,
        "font": {"size": sizes.note, "color": theme.muted},
    }  # fmt: skip


def _number(
    column: _Column, row: int, rung: Rung, chosen: int | None, theme: Theme, sizes: Type
) -> dict[str, object]:
    text = literal(_text(column.values[row], rung, column.number))
    own = _is(rung, chosen)
    return {
        "text": f"<b>{text}</b>" if own else text, "xref": "paper", "x": column.start, "y": row,
        "xanchor": "left", "yanchor": "middle", "xshift": 2, "showarrow": False,
        "font": {"size": sizes.tick, "family": MONO, "color": theme.query if own else theme.ink},
    }  # fmt: skip


def _label(rung: Rung, chosen: int | None, theme: Theme) -> str:
    if rung.key is None:
        return f'<span style="color:{theme.muted}">{rung.label}{SPACE}</span>'
    text = f"{literal(shorten(rung.label, LABEL))} <sub>{rung.key}</sub>{SPACE}"
    return f'<b><span style="color:{theme.query}">{text}</span></b>' if _is(rung, chosen) else text


def _room(rungs: Sequence[Rung], sizes: Type) -> float:
    longest = max(
        len(shorten(r.label, LABEL)) + len(f"{r.key}") * 0.8 + 1 if r.key is not None
        else len(r.label)
        for r in rungs
    )  # fmt: skip
    return (longest + 1) * 0.6 * (sizes.tick + 1) + 10
