"""What comes next, before and after a change: two bars a token."""

from collections.abc import Sequence

import plotly.graph_objects as go

from mha_viz.figures.text import literal
from mha_viz.figures.theme import MONO, NORMAL, SANS, Theme, Type
from mha_viz.tokens import shorten

LABEL = 14


def compare_predictions(
    labels: Sequence[str],
    before: Sequence[float],
    after: Sequence[float],
    theme: Theme,
    *,
    names: tuple[str, str] = ("before", "after"),
    sizes: Type = NORMAL,
) -> go.Figure:
    """Probabilities of the tokens `labels`, the likeliest at the top: pale before, strong after."""
    rows = list(range(len(labels)))
    data = [
        _bars(rows, before, names[0], theme.control, -0.2, sizes, theme),
        _bars(rows, after, names[1], theme.accent, 0.2, sizes, theme),
    ]
    room = 0.6 * (sizes.tick + 1) * max((len(shorten(t, LABEL)) for t in labels), default=4) + 14
    layout = {
        "template": "none", "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": room, "r": 44, "t": 26, "b": 6}, "dragmode": False,
        "font": {"family": SANS, "color": theme.ink}, "bargap": 0.25, "barmode": "overlay",
        "legend": {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom",
                   "font": {"size": sizes.note + 1, "color": theme.ink}},
        "hoverlabel": {"bgcolor": theme.surface, "bordercolor": theme.query,
                       "font": {"family": MONO, "size": sizes.tick + 1, "color": theme.ink}},
        "xaxis": {"visible": False, "fixedrange": True,
                  "range": [0, max([*before, *after, 0.01]) * 1.02]},
        "yaxis": {
            "range": [len(labels) - 0.5, -0.5], "fixedrange": True, "showgrid": False, "ticks": "",
            "zeroline": False, "tickvals": rows, "ticklabeloverflow": "allow",
            "ticktext": [literal(shorten(t, LABEL)) for t in labels],
            "tickfont": {"size": sizes.tick + 1, "family": MONO, "color": theme.ink},
        },
    }  # fmt: skip
    return go.Figure(data=data, layout=layout)


def _bars(
    rows: list[int], values: Sequence[float], name: str, colour: str, offset: float,
    sizes: Type, theme: Theme,
) -> dict[str, object]:  # fmt: skip
    return {
        "type": "bar", "orientation": "h", "name": name, "width": 0.36,
        "x": list(values), "y": [row + offset for row in rows],
        "marker": {"color": colour, "line": {"width": 0}},
        "text": [f"{v:.2f}" if v >= 0.005 else "<0.01" for v in values],
        "textposition": "outside", "cliponaxis": False, "constraintext": "none",
        "textfont": {"size": sizes.tick, "color": theme.muted},
        "hovertemplate": f"{name}: %{{x:.4f}}<extra></extra>",
    }  # fmt: skip
