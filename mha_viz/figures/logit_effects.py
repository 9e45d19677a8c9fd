"""The next tokens that a head raises and lowers: a bar each, orange up and blue down."""

from collections.abc import Sequence

import plotly.graph_objects as go

from mha_viz.figures.text import literal
from mha_viz.figures.theme import MONO, NORMAL, SANS, Theme, Type
from mha_viz.tokens import shorten

LABEL = 14
ROW = 21  # pixels


def pushes_height(n: int) -> int:
    """Pixels for so many tokens."""
    return ROW * n + 12


def pushes(
    labels: Sequence[str], effects: Sequence[float], theme: Theme, *, sizes: Type = NORMAL
) -> go.Figure:
    """The effect on the logit of each token, from the top down; bars start at zero."""
    rows = list(range(len(labels)))
    colours = [theme.diverging[7] if v >= 0 else theme.diverging[2] for v in effects]
    low, high = min(0.0, *effects), max(0.0, *effects)
    room = 0.2 * ((high - low) or 1.0)
    bars = {
        "type": "bar", "orientation": "h", "x": list(effects), "y": rows, "width": 0.74,
        "marker": {"color": colours, "line": {"width": 0}}, "cliponaxis": False,
        "text": [f"{v:+.3f}".replace("-", "−") for v in effects], "textposition": "outside",
        "constraintext": "none", "textfont": {"size": sizes.tick, "color": theme.muted},
        "customdata": [literal(shorten(t, LABEL)) for t in labels],
        "hovertemplate": "%{customdata}: %{x:+.6g}<extra></extra>",
    }  # fmt: skip
    layout = {
        "template": "none", "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": _room(labels, sizes), "r": 8, "t": 6, "b": 6}, "dragmode": False,
        "font": {"family": SANS, "color": theme.ink}, "showlegend": False, "bargap": 0.25,
        "hoverlabel": {"bgcolor": theme.surface, "bordercolor": theme.query,
                       "font": {"family": MONO, "size": sizes.tick + 1, "color": theme.ink}},
        "xaxis": {"visible": False, "fixedrange": True,
                  "range": [low - room * (low < 0), high + room * (high > 0)]},
        "yaxis": {
            "range": [len(labels) - 0.5, -0.5], "fixedrange": True, "showgrid": False, "ticks": "",
            "zeroline": False, "tickvals": rows, "ticklabeloverflow": "allow",
            "ticktext": [literal(shorten(t, LABEL)) for t in labels],
            "tickfont": {"size": sizes.tick + 1, "family": MONO, "color": theme.ink},
        },
        "shapes": [
            {"type": "line", "x0": 0, "x1": 0, "yref": "paper", "y0": 0, "y1": 1,
             "line": {"color": theme.control, "width": 1}},
        ],
    }  # fmt: skip
    return go.Figure(data=[bars], layout=layout)


def _room(labels: Sequence[str], sizes: Type) -> float:
    longest = max((len(shorten(t, LABEL)) for t in labels), default=4)
    return longest * 0.6 * (sizes.tick + 1) + 14
