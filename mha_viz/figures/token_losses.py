"""The loss of each token of a text before and after a change."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from mha_viz.figures.base import Style, hover
from mha_viz.figures.labels import MAX_LETTERS, tick_positions, token_labels
from mha_viz.figures.marks import bars, fill, line
from mha_viz.figures.text import escape, text_width
from mha_viz.figures.theme import NORMAL, TextSizes, Theme
from mha_viz.tokens import shorten
from mha_viz.trace import Array

VISIBLE = 0.05  # nats; a smaller change has no colour


def token_losses(
    tokens: Sequence[str],
    before: Array,
    after: Array,
    theme: Theme,
    *,
    names: tuple[str, str] = ("full model", "ablated"),
    sizes: TextSizes = NORMAL,
) -> go.Figure:
    """Losses `[T - 1]` of the tokens from position 1 on: a line before, a bar after.

    Bars are orange where the loss rose by more than 0.05 nats, blue where it fell by as much.
    """
    style, T = Style(theme, sizes), len(tokens)
    x, rise = np.arange(1, T), after - before
    colours = np.where(rise < -VISIBLE, theme.key, theme.control)
    colours = np.where(rise > VISIBLE, theme.query, colours).tolist()
    first, second = map(escape, names)
    text = f"%{{x}}: %{{y:.3f}} nats, {first} %{{customdata[0]:.3f}} (%{{customdata[1]:+.3f}})"
    ablated = bars(x, after, 0.8, name=second, customdata=np.stack([before, rise], axis=1))
    full = line(x, before, theme.ink, 1.5, name=first)
    full["line"]["shape"] = "hvh"
    at = [i for i in tick_positions(0, T) if i]
    labelled = [tokens[i] for i in at]
    width = text_width([shorten(token, MAX_LETTERS) for token in labelled], sizes.text)
    labels = {"tickvals": at, "ticktext": token_labels(labelled), "ticklabeloverflow": "allow"}
    return style.figure(
        ablated | fill(colours) | hover(text),
        full,
        margin={"l": 34, "r": 6, "t": 22, "b": width + 12},
        showlegend=True,
        legend=style.legend(),
        xaxis=style.axis(range=[0.5, T - 0.5], tickangle=-90, tickfont=style.mono()) | labels,
        yaxis=style.axis(grid=True, rangemode="tozero", nticks=5, ticklabeloverflow="allow"),
    )
