"""What each token of a text costs: its loss before a change and after, under the token itself."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from mha_viz.figures.labels import LABEL, names, tick_positions
from mha_viz.figures.text import literal
from mha_viz.figures.theme import MONO, NORMAL, SANS, Theme, Type
from mha_viz.tokens import shorten
from mha_viz.trace import Array


def token_losses(
    tokens: Sequence[str],
    before: Array,
    after: Array,
    theme: Theme,
    *,
    sizes: Type = NORMAL,
) -> go.Figure:
    """Losses `[T - 1]` of the tokens from position 1 on: a step before, a bar after.

    Bars are orange where the loss rose by more than 0.05 nats, blue where it fell by as much.
    """
    T = len(tokens)
    x = np.arange(1, T)
    rise = after - before
    colours = np.where(rise > 0.05, theme.query, np.where(rise < -0.05, theme.key, theme.control))
    bars = {
        "type": "bar", "x": x, "y": after, "width": 0.8, "name": "now",
        "marker": {"color": colours.tolist(), "line": {"width": 0}},
        "customdata": np.stack([before, rise], axis=1),
        "hovertemplate": "%{x}: %{y:.3f} nats, before %{customdata[0]:.3f} "
                         "(%{customdata[1]:+.3f})<extra></extra>",
    }  # fmt: skip
    steps = {
        "type": "scatter", "mode": "lines", "x": x, "y": before, "name": "whole model",
        "line": {"color": theme.ink, "width": 1.5, "shape": "hvh"}, "hoverinfo": "skip",
    }  # fmt: skip
    at = [i for i in tick_positions(0, T) if i]
    room = 0.6 * sizes.tick * max((len(shorten(tokens[i], LABEL)) for i in at), default=2) + 12
    axis = {
        "fixedrange": True, "showgrid": False, "zeroline": False, "ticks": "",
        "ticklabeloverflow": "allow", "tickfont": {"size": sizes.tick, "color": theme.muted},
    }  # fmt: skip
    layout = {
        "template": "none", "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": 34, "r": 6, "t": 22, "b": room}, "dragmode": False, "bargap": 0,
        "font": {"family": SANS, "color": theme.ink}, "meta": names(tokens, on="x"),
        "legend": {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom",
                   "font": {"size": sizes.note, "color": theme.ink}},
        "hoverlabel": {"bgcolor": theme.surface, "bordercolor": theme.query,
                       "font": {"family": MONO, "size": sizes.tick + 1, "color": theme.ink}},
        "xaxis": axis | {
            "range": [0.5, T - 0.5], "tickangle": -90, "tickvals": at,
            "ticktext": [literal(shorten(tokens[i], LABEL)) for i in at],
            "tickfont": {"size": sizes.tick, "family": MONO, "color": theme.ink},
        },
        "yaxis": axis | {"rangemode": "tozero", "showgrid": True, "gridcolor": theme.hairline,
                         "nticks": 5},
    }  # fmt: skip
    return go.Figure(data=[bars, steps], layout=layout)
