"""What heads look at, as lines between two rows of tokens: for files and notebooks.

The page draws the same lines on a canvas, where those of a token light up under the pointer.
"""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from mha_viz.analysis.dot_product import Lines, strongest
from mha_viz.figures.labels import room, token_ticks
from mha_viz.figures.text import literal
from mha_viz.figures.theme import MONO, NORMAL, SANS, Theme, Type

MOST = 3000  # lines of all heads; more would be one grey area
STEPS = 10  # strengths; the lines of one head and strength are one trace
PITCH, LONGEST = 21, 960  # pixels of a token, for as long as the picture stays below the longest
ACROSS = 300  # pixels between the rows of a picture that lies
LANE = 0.12  # tokens between the lines of two heads


def head_view(
    heads: Sequence[tuple[str, Lines]],
    tokens: Sequence[str],
    theme: Theme,
    *,
    upright: bool = True,
    sizes: Type = NORMAL,
) -> go.Figure:
    """The lines of each named head, a colour a head: what looks is left, what is looked at right.

    Not `upright`, what looks is above. A line is stronger for a larger weight (√). Of more than
    MOST lines the strongest are drawn.
    """
    kept = strongest([found for _, found in heads], MOST)
    length = min(LONGEST, PITCH * len(tokens))
    widest = min(3.0, 0.4 + length / len(tokens) / 6)
    traces: list[dict[str, object]] = [
        trace
        for number, ((name, _), found) in enumerate(zip(heads, kept, strict=True))
        for trace in _of_head(
            name, found, _lane(number, len(heads)), theme.categorical[number % 8], widest, upright
        )
    ]
    # Plotly draws the labels of a second axis for as long as some trace lies on it.
    second = {"yaxis": "y2"} if upright else {"xaxis": "x2"}
    nothing = {"type": "scatter", "x": [None], "y": [None], "hoverinfo": "skip"}
    traces.append(nothing | second | {"showlegend": False})
    side = room(tokens, sizes)
    ends = {"l": side, "r": side, "t": 34, "b": 40}
    if not upright:
        ends = {"l": 12, "r": 12, "t": side, "b": side + 34}
    layout: dict[str, object] = {
        "template": "none", "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": ends, "dragmode": False, "hovermode": "closest",
        "font": {"family": SANS, "color": theme.ink}, "showlegend": True,
        "legend": {"orientation": "h", "x": 0, "yref": "container", "y": 0, "yanchor": "bottom",
                   "font": {"size": sizes.note + 1, "color": theme.ink}},
        "hoverlabel": {"bgcolor": theme.surface, "bordercolor": theme.query,
                       "font": {"family": MONO, "size": sizes.tick + 1, "color": theme.ink}},
        **_axes(tokens, theme, sizes, upright),
    }  # fmt: skip
    if upright:
        layout["height"] = length + 74
    else:
        layout["height"] = ACROSS + 2 * side + 34
    return go.Figure(data=traces, layout=layout)


def _lane(number: int, of: int) -> float:
    """With several heads a token has a lane for each, so that no line hides another."""
    return (number - (of - 1) / 2) * min(LANE, 0.7 / of)


def _of_head(
    name: str, found: Lines, lane: float, colour: str, widest: float, upright: bool
) -> list[dict[str, object]]:
    """A trace for each strength; the first one stands for the head in the legend."""
    steps = np.minimum(STEPS - 1, (np.sqrt(found.weights) * STEPS).astype(int))
    traces: list[dict[str, object]] = []
    for step in np.unique(steps)[::-1]:
        at = steps == step
        strength = (float(step) + 0.5) / STEPS
        along = _broken(found.queries[at] + lane, found.keys[at] + lane)
        across = _broken(np.zeros(int(at.sum())), np.ones(int(at.sum())))
        traces.append(
            {"type": "scatter", "mode": "lines", "name": literal(name), "legendgroup": name,
             "showlegend": not traces, "opacity": 0.1 + 0.9 * strength**1.5,
             "line": {"color": colour, "width": max(0.5, widest * strength)},
             "x": across if upright else along, "y": along if upright else across,
             "customdata": np.repeat(found.weights[at], 3),
             "hovertemplate": f"{literal(name)}: %{{customdata:.3f}}<extra></extra>"}
        )  # fmt: skip
    if not traces:  # the legend names a head that has no line, too
        traces = [{"type": "scatter", "mode": "lines", "name": literal(name), "x": [None],
                   "y": [None], "line": {"color": colour}, "hoverinfo": "skip"}]  # fmt: skip
    return traces


def _broken(begin: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Begin and end of each line, and a gap after it."""
    return np.stack([begin, end, np.full(len(begin), np.nan)], axis=1).ravel()


def _axes(
    tokens: Sequence[str], theme: Theme, sizes: Type, upright: bool
) -> dict[str, dict[str, object]]:
    bare: dict[str, object] = {
        "showgrid": False, "zeroline": False, "showline": False, "ticks": "", "fixedrange": True,
    }  # fmt: skip
    rows = bare | {
        "range": [len(tokens) - 0.5, -0.5] if upright else [-0.5, len(tokens) - 0.5],
        "ticklabeloverflow": "allow", **token_ticks(tokens),
        "tickfont": {"size": sizes.tick, "family": MONO, "color": theme.ink},
    }  # fmt: skip
    titled = {"tickfont": {"size": sizes.note, "color": theme.muted}}
    sides = bare | titled | {"tickvals": [0, 1], "ticktext": ["looks from", "looks at"]}
    if upright:
        return {
            "yaxis": rows, "yaxis2": rows | {"overlaying": "y", "side": "right"},
            "xaxis": sides | {"range": [0, 1], "side": "top"},
        }  # fmt: skip
    turned = rows | {"tickangle": -90}
    return {
        "xaxis": turned | {"side": "top"},
        "xaxis2": turned | {"overlaying": "x", "side": "bottom"},
        "yaxis": sides | {"range": [1, 0], "visible": False},
    }
