"""The cache of many models side by side: as they are, and with more or fewer key/value heads."""

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from mha_viz.figures.text import literal
from mha_viz.figures.theme import MONO, NORMAL, SANS, Theme, Type

KINDS = ("multi-head", "grouped-query", "multi-query")
SHORT = ("MHA", "GQA", "MQA")
SYMBOLS = ("circle", "diamond", "square")
ROW = 27  # pixels


@dataclass(frozen=True, slots=True)
class Cached:
    """A model and the bytes of its cache: with G = H, with fewer, with G = 1, and which it has."""

    name: str
    n_bytes: tuple[int, int, int]  # in the order of KINDS
    own: int  # the bytes of the model as it is
    own_kind: str


def cache_sizes_figure(
    models: Sequence[Cached], theme: Theme, *, sizes: Type = NORMAL
) -> go.Figure:
    """A row for each model, bytes on a logarithmic axis; what the model has is orange."""
    rows = list(range(len(models)))
    others = [
        _points(
            [m.n_bytes[kind] for m in models], rows, SHORT[kind], SYMBOLS[kind], models,
            {"color": theme.page, "line": {"color": theme.accent, "width": 2}},
        )
        for kind in range(len(KINDS))
    ]  # fmt: skip
    own = _points(
        [m.own for m in models], rows, "as it is",
        [SYMBOLS[KINDS.index(m.own_kind)] for m in models], models, {"color": theme.query},
    )  # fmt: skip
    ticks = _powers(min(min(m.n_bytes) for m in models), max(max(m.n_bytes) for m in models))
    room = 0.56 * (sizes.tick + 1) * max(len(m.name) for m in models) + 14
    layout = {
        "template": "none", "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": room, "r": 14, "t": 48, "b": 34}, "dragmode": False,
        "hovermode": "closest", "font": {"family": SANS, "color": theme.ink},
        "legend": {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "itemclick": False,
                   "itemdoubleclick": False,
                   "font": {"size": sizes.note + 1, "color": theme.ink}},
        "hoverlabel": {"bgcolor": theme.surface, "bordercolor": theme.query,
                       "font": {"family": MONO, "size": sizes.tick + 1, "color": theme.ink}},
        "xaxis": {
            "type": "log", "gridcolor": theme.hairline, "zeroline": False, "ticks": "",
            "fixedrange": True, "tickvals": ticks, "ticktext": [in_bytes(t) for t in ticks],
            "tickfont": {"size": sizes.tick, "color": theme.muted},
        },
        "yaxis": {
            "range": [len(models) - 0.5, -0.5], "fixedrange": True, "showgrid": False, "ticks": "",
            "zeroline": False, "tickvals": rows, "ticktext": [literal(m.name) for m in models],
            "ticklabeloverflow": "allow",
            "tickfont": {"size": sizes.tick + 1, "color": theme.ink},
        },
    }  # fmt: skip
    return go.Figure(data=[_spans(models, theme), *others, own], layout=layout)


def height(n_models: int) -> int:
    """Pixels for so many models."""
    return 86 + n_models * ROW


def in_bytes(n: float) -> str:
    """A number of bytes as people read it: 36.0 KiB."""
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if n >= size:
            value = n / size
            return (
                f"{value:,.0f} {unit}"
                if value >= 100 or value == int(value)
                else (f"{value:,.1f} {unit}")
            )
    return f"{n:,.0f} bytes"


def _spans(models: Sequence[Cached], theme: Theme) -> dict[str, object]:
    ends = [(min(m.n_bytes), max(m.n_bytes)) for m in models]
    return {
        "type": "scatter", "mode": "lines", "hoverinfo": "skip", "showlegend": False,
        "x": [x for low, high in ends for x in (low, high, None)],
        "y": [y for row in range(len(models)) for y in (row, row, None)],
        "line": {"color": theme.hairline, "width": 2},
    }  # fmt: skip


def _points(
    x: list[int], y: list[int], name: str, symbol: str | list[str], models: Sequence[Cached],
    marker: dict[str, object],
) -> dict[str, object]:  # fmt: skip
    return {
        "type": "scatter", "mode": "markers", "x": x, "y": y, "name": name,
        "marker": {"size": 10, "symbol": symbol, "opacity": 1, **marker},
        "customdata": [[literal(m.name), in_bytes(n)] for m, n in zip(models, x, strict=True)],
        "hovertemplate": f"%{{customdata[0]}}, {name}: %{{customdata[1]}}<extra></extra>",
    }  # fmt: skip


def _powers(low: float, high: float) -> list[float]:
    """Powers of 16 from below `low` to above `high`."""
    found = [1.0]
    while found[-1] < high:
        found.append(found[-1] * 16)
    return [n for n in found if n * 16 > low]
