"""The tokens that one step chose from: what the model says, and what was drawn from."""

from collections.abc import Sequence

import plotly.graph_objects as go

from mha_viz.figures.text import literal
from mha_viz.figures.theme import MONO, NORMAL, SANS, Theme, Type
from mha_viz.tokens import shorten

LABEL = 14  # characters of a token
ROW = 30  # pixels


def candidates_figure(
    labels: Sequence[str],
    before: Sequence[float],
    after: Sequence[float] | None,
    chosen: int,
    theme: Theme,
    *,
    sizes: Type = NORMAL,
) -> go.Figure:
    """Bars of probability, the likeliest token at the top; the `chosen` row is framed in orange.

    Violet is `before`, what the model says. With `after` that is pale, and violet is what was
    drawn from; a token that the filters took away has no bar there, and says so.
    """
    n = len(labels)
    data = []
    if after is None:
        data.append(_bars(before, "the model", theme.accent, 0.0, 0.6, theme, sizes))
    else:
        data.append(_bars(before, "the model", theme.control, -0.2, 0.36, theme, sizes))
        data.append(_bars(after, "drawn from", theme.accent, 0.2, 0.36, theme, sizes))
    top = max([*before, *(after or ())]) or 1.0
    frame = {
        "type": "rect", "xref": "paper", "x0": 0, "x1": 1, "y0": chosen - 0.47,
        "y1": chosen + 0.47, "line": {"color": theme.query, "width": 2},
    }  # fmt: skip
    room = 0.6 * (sizes.tick + 1) * max(len(shorten(t, LABEL)) for t in labels) + 14
    layout = {
        "template": "none", "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": room, "r": 6, "t": 4 if after is None else 26, "b": 4},
        "dragmode": False, "barmode": "overlay",
        "font": {"family": SANS, "color": theme.ink}, "shapes": [frame],
        "showlegend": after is not None, "hovermode": "closest",
        "legend": {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "itemclick": False,
                   "itemdoubleclick": False,
                   "font": {"size": sizes.note + 1, "color": theme.ink}},
        "hoverlabel": {"bgcolor": theme.surface, "bordercolor": theme.query,
                       "font": {"family": MONO, "size": sizes.tick + 1, "color": theme.ink}},
        # Room at the right for the number of the longest bar.
        "xaxis": {"visible": False, "fixedrange": True, "range": [0, 1.25 * top]},
        "yaxis": {
            "range": [n - 0.5, -0.5], "fixedrange": True, "showgrid": False, "zeroline": False,
            "ticks": "", "ticklabeloverflow": "allow", "tickvals": list(range(n)),
            "ticktext": [_label(t, i == chosen, theme) for i, t in enumerate(labels)],
            "tickfont": {"size": sizes.tick + 1, "family": MONO, "color": theme.ink},
        },
    }  # fmt: skip
    return go.Figure(data=data, layout=layout)


def height(n: int) -> int:
    """Pixels for so many candidates."""
    return 30 + n * ROW


def told(p: float) -> str:
    """A probability in two digits; below that, that it is small."""
    return f"{p:.2f}" if p >= 0.005 else "<0.01"


def _label(token: str, chosen: bool, theme: Theme) -> str:
    text = literal(shorten(token, LABEL))
    return f'<b><span style="color:{theme.query}">{text}</span></b>' if chosen else text


def _bars(
    values: Sequence[float], name: str, colour: str, offset: float, width: float, theme: Theme,
    sizes: Type,
) -> dict[str, object]:  # fmt: skip
    return {
        "type": "bar", "orientation": "h", "name": name, "width": width,
        "x": list(values), "y": [row + offset for row in range(len(values))],
        "marker": {"color": colour, "line": {"width": 0}},
        "text": [told(v) if v else "filtered out" for v in values],
        "textposition": "outside", "cliponaxis": False, "constraintext": "none",
        "textfont": {"size": sizes.tick, "color": theme.muted},
        "hovertemplate": f"{name}: %{{x:.4g}}<extra></extra>",
    }  # fmt: skip
