"""Two patterns of one head side by side: as it should be, and with a bug."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from mha_viz.figures.base import Spec, Style, hover
from mha_viz.figures.labels import label_width, token_axis, token_ticks
from mha_viz.figures.marks import gaps, heatmap, rectangle, stroke
from mha_viz.figures.pooling import pool_by_magnitude
from mha_viz.figures.text import escape
from mha_viz.figures.theme import NORMAL, TextSizes, Theme, colorscale
from mha_viz.figures.window import MAX_CELLS
from mha_viz.trace import Array

GAP = 0.06  # between the two, as a share of the width
MAX_LABELS = 12


def pattern_pair(
    right: Array,
    wrong: Array,
    tokens: Sequence[str],
    theme: Theme,
    *,
    most: tuple[str, str],
    sizes: TextSizes = NORMAL,
) -> go.Figure:
    """The patterns `[T, T]`, coloured by the square root of the weight; NaN is blank.

    The last row is framed, and its largest weight outlined; `most` are the notes under it.
    """
    style, T = Style(theme, sizes), len(tokens)
    block = max(1, -(-T // MAX_CELLS))
    traces: list[Spec] = []
    shapes: list[Spec] = []
    notes: list[Spec] = []
    axes: Spec = {}
    domains = ((0.0, (1 - GAP) / 2), ((1 + GAP) / 2, 1.0))
    pairs = (("right", right, theme.good), ("wrong", wrong, theme.bad))
    for n, (name, pattern, colour) in enumerate(pairs):
        number = str(n + 1) if n else ""
        refs = {"xaxis": f"x{number}", "yaxis": f"y{number}"}
        traces.append(_cells(pattern, block, theme) | refs)
        at = {"xref": f"x{number}", "yref": f"y{number}"}
        shapes += [shape | at for shape in _marks(pattern, theme)]
        notes.append(_corner(name, colour, style) | {"xref": f"x{number} domain", "yref": "paper"})
        foot = style.note(escape(most[n]), 1, -0.02, anchor="right top", font=style.ink())
        notes.append(foot | {"xref": f"x{number} domain", "yref": "paper"})
        x = token_axis(style, range=[-0.5, T - 0.5], fixedrange=True, showticklabels=False)
        y = token_axis(style, range=[T - 0.5, -0.5], fixedrange=True, showticklabels=not n)
        axes[f"xaxis{number}"] = x | {"domain": domains[n], "anchor": f"y{number}"}
        labels = token_ticks(tokens, most=MAX_LABELS)
        axes[f"yaxis{number}"] = y | labels | {"anchor": f"x{number}"}
    width = label_width(tokens, style)
    bottom = 1.8 * sizes.text
    return style.figure(
        *traces,
        margin={"l": width, "r": 2, "t": 4, "b": bottom},
        shapes=shapes,
        annotations=notes,
        **axes,
    )


def _cells(pattern: Array, block: int, theme: Theme) -> Spec:
    pooled = pool_by_magnitude(pattern.astype(np.float32), block)
    cells = heatmap(np.sqrt(pooled), 0, 1, colorscale(theme), block=block, customdata=pooled)
    text = hover("row %{y}, column %{x}: %{customdata:.3f}")
    return cells | gaps(pooled) | text | {"showscale": False}


def _marks(pattern: Array, theme: Theme) -> list[Spec]:
    """The frame of the last row, and the outline of its largest weight."""
    last = len(pattern) - 1
    key = int(np.nanargmax(pattern[last]))
    row = rectangle(-0.5, last + 0.5, last - 0.5, last + 0.5)
    cell = rectangle(key - 0.5, key + 0.5, last - 0.5, last + 0.5)
    return [row | stroke(theme.query, 2), cell | stroke(theme.ink, 2)]


def _corner(name: str, colour: str, style: Style) -> Spec:
    font = {"size": style.sizes.text + 1, "color": colour}
    behind = {"bgcolor": style.theme.page, "borderpad": 1}
    return style.note(f"<b>{name}</b>", 1, 1, anchor="right top", font=font) | behind
