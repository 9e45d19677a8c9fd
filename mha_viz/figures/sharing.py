"""Which query heads read which key/value head."""

from collections.abc import Sequence

import plotly.graph_objects as go

from mha_viz.figures.shapes import head_colours
from mha_viz.figures.theme import MONO, NORMAL, SANS, Theme, Type

TOP, BOTTOM = 0.0, 2.2  # where the two rows stand, in heights of a box
BOX = 0.84  # width and height of a box, in units
NARROWEST = 8  # heads that the width is made for, so that few heads are no wide planks
FEW = 16  # boxes in a row that are all named; of more, every second or fourth


def sharing_figure(
    n_heads: int,
    n_kv_heads: int,
    theme: Theme,
    *,
    chosen: int | None = None,
    sizes: Type = NORMAL,
) -> go.Figure:
    """H query heads over G key/value heads, a line from each to the one that it reads.

    Head h reads key/value head h // (H / G) (Ainslie et al. 2023, section 2.2). `chosen` and what
    it reads are outlined.
    """
    share = n_heads // n_kv_heads
    colours = head_colours(theme, n_heads)
    at = [share * g + (share - 1) / 2 for g in range(n_kv_heads)]
    reads = [h // share for h in range(n_heads)]
    lines = [
        _connection(h, at[g], colours[h], wide=h == chosen) for h, g in enumerate(reads)
    ]  # fmt: skip
    marks = [] if chosen is None else [(chosen, TOP), (at[reads[chosen]], BOTTOM)]
    queries = _boxes(range(n_heads), TOP, colours, 0.4, theme, sizes) | {
        "hovertext": [f"query head {h} reads key/value head {g}" for h, g in enumerate(reads)]
    }
    shared = _boxes(at, BOTTOM, [theme.control] * n_kv_heads, 0.25, theme, sizes) | {
        "hovertext": [f"key/value head {g}: {_readers(g, share)}" for g in range(n_kv_heads)]
    }
    axis = {"visible": False, "fixedrange": True}
    layout = {
        "template": "none", "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": 44, "r": 4, "t": 4, "b": 4}, "dragmode": False, "showlegend": False,
        "barmode": "overlay", "bargap": 0, "hovermode": "closest",
        "font": {"family": SANS, "color": theme.ink},
        "shapes": [*lines, *(_frame(x, y, theme) for x, y in marks)],
        "annotations": [_row("q", TOP, theme, sizes), _row("k, v", BOTTOM, theme, sizes)],
        "hoverlabel": {"bgcolor": theme.surface, "bordercolor": theme.query,
                       "font": {"family": MONO, "size": sizes.tick + 1, "color": theme.ink}},
        "xaxis": axis | {"range": [-0.5, max(n_heads, NARROWEST) - 0.5]},
        "yaxis": axis | {"range": [BOTTOM + 0.5, TOP - 0.5]},
    }  # fmt: skip
    return go.Figure(data=[queries, shared], layout=layout)


def _boxes(
    at: Sequence[float], y: float, colours: Sequence[str], opacity: float, theme: Theme, sizes: Type
) -> dict[str, object]:
    n = len(at)
    step = 1 if n <= FEW else 2 if n <= 2 * FEW else 4
    return {
        "type": "bar", "x": list(at), "y": [BOX] * n, "base": [y - BOX / 2] * n, "width": BOX,
        "marker": {"color": list(colours), "opacity": opacity, "line": {"width": 0}},
        "text": [str(i) if i % step == 0 else "" for i in range(n)], "textposition": "inside",
        "insidetextanchor": "middle", "textangle": 0, "constraintext": "none",
        "textfont": {"size": sizes.tick, "family": MONO, "color": theme.ink},
        "hovertemplate": "%{hovertext}<extra></extra>",
    }  # fmt: skip


def _connection(x0: float, x1: float, colour: str, *, wide: bool) -> dict[str, object]:
    return {
        "type": "line", "x0": x0, "x1": x1, "y0": TOP + BOX / 2, "y1": BOTTOM - BOX / 2,
        "layer": "below", "line": {"color": colour, "width": 4 if wide else 2},
    }  # fmt: skip


def _frame(x: float, y: float, theme: Theme) -> dict[str, object]:
    half = BOX / 2 + 0.03
    return {
        "type": "rect", "x0": x - half, "x1": x + half, "y0": y - half, "y1": y + half,
        "line": {"color": theme.query, "width": 3},
    }  # fmt: skip


def _row(text: str, y: float, theme: Theme, sizes: Type) -> dict[str, object]:
    return {
        "text": text, "xref": "paper", "x": 0, "y": y, "xanchor": "right", "yanchor": "middle",
        "xshift": -6, "showarrow": False,
        "font": {"size": sizes.note + 1, "family": MONO, "color": theme.muted},
    }  # fmt: skip


def _readers(g: int, share: int) -> str:
    first = g * share
    if share == 1:
        return f"read by query head {first}"
    return f"read by query heads {first} to {first + share - 1}"
