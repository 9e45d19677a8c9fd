"""Key/value cache sizes of several models, actual and with more or fewer key/value heads."""

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from mha_viz.figures.base import Spec, Style, hover
from mha_viz.figures.marks import line
from mha_viz.figures.text import escape, format_bytes
from mha_viz.figures.theme import NORMAL, TextSizes, Theme

KINDS = ("multi-head", "grouped-query", "multi-query")
SHORT = ("MHA", "GQA", "MQA")
SYMBOLS = ("circle", "diamond", "square")
ROW = 27  # pixels


@dataclass(frozen=True, slots=True)
class CacheSize:
    """The bytes of a model's cache: for each of KINDS, and for the kind that the model has."""

    name: str
    n_bytes: tuple[int, int, int]
    actual: int
    actual_kind: str


def cache_sizes_figure(
    models: Sequence[CacheSize], theme: Theme, *, sizes: TextSizes = NORMAL
) -> go.Figure:
    """A row per model, bytes on a logarithmic axis; the actual size is orange."""
    style = Style(theme, sizes)
    hollow = {"color": theme.page, "line": {"color": theme.accent, "width": 2}}
    alternatives = [
        _points(SHORT[i], [model.n_bytes[i] for model in models], models, hollow | {"symbol": sign})
        for i, sign in enumerate(SYMBOLS)
    ]
    symbols = [SYMBOLS[KINDS.index(model.actual_kind)] for model in models]
    solid = {"color": theme.query, "symbol": symbols}
    smallest = min(min(model.n_bytes) for model in models)
    largest = max(max(model.n_bytes) for model in models)
    ticks = _powers(smallest, largest)
    letters = max(len(model.name) for model in models)
    return style.figure(
        _ranges(models, theme),
        *alternatives,
        _points("actual", [model.actual for model in models], models, solid),
        margin={"l": 0.56 * (sizes.text + 1) * letters + 14, "r": 14, "t": 48, "b": 34},
        showlegend=True,
        legend=style.legend(clickable=False),
        xaxis=style.axis(
            grid=True, type="log", tickvals=ticks, ticktext=[*map(format_bytes, ticks)]
        ),
        yaxis=style.rows([escape(model.name) for model in models], tickfont=style.ink(1)),
    )


def height(n_models: int) -> int:
    """The height for n models, in pixels."""
    return 86 + n_models * ROW


def _ranges(models: Sequence[CacheSize], theme: Theme) -> Spec:
    """A pale line in each row from the smallest size to the largest."""
    ends = [(min(model.n_bytes), max(model.n_bytes)) for model in models]
    x = [n for low, high in ends for n in (low, high, None)]
    y = [place for row in range(len(models)) for place in (row, row, None)]
    return line(x, y, theme.hairline, 2, showlegend=False)


def _points(name: str, n_bytes: list[int], models: Sequence[CacheSize], marker: Spec) -> Spec:
    labels = [[escape(m.name), format_bytes(n)] for m, n in zip(models, n_bytes, strict=True)]
    points = {"type": "scatter", "mode": "markers", "x": n_bytes, "y": list(range(len(models)))}
    marker = {"size": 10, "opacity": 1} | marker
    text = hover(f"%{{customdata[0]}}, {name}: %{{customdata[1]}}")
    return points | text | {"name": name, "marker": marker, "customdata": labels}


def _powers(low: float, high: float) -> list[float]:
    """Powers of 16 from below `low` to above `high`."""
    powers = [1.0]
    while powers[-1] < high:
        powers.append(powers[-1] * 16)
    return [n for n in powers if n * 16 > low]
