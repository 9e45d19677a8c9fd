"""The dot product of a query and a key: both as strips of cells, their products, and their sum."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from mha_viz.figures.base import Spec, Style, hover
from mha_viz.figures.marks import bars, fill, heatmap, horizontal_line, line, stroke
from mha_viz.figures.text import with_minus
from mha_viz.figures.theme import NORMAL, TextSizes, Theme, diverging_scale

Vector = NDArray[np.float64]
MAX_LABELS = 24  # axis labels that fit on a phone
STRIPS = (0.5, 1.0)  # of the height, for the strips; the rest is for the sum
SUM = (0.0, 0.45)
SPACE = "\u2002"  # between a letter and its strip


def dot_product_figure(
    q: Vector, k: Vector, order: Sequence[int], theme: Theme, *, sizes: TextSizes = NORMAL
) -> go.Figure:
    """The strips q and k `[d_h]`, q x k below them, and its running sum, in the given order.

    Blue is below zero and orange above, from -m to m: one m for q and k, another for q x k. A bar
    runs from the sum before an element to the sum after it, and a line follows the sum.
    """
    style, elements = Style(theme, sizes), np.asarray(order)
    q, k = q[elements], k[elements]
    products, blank = q * k, np.full(len(elements), np.nan)
    total = np.cumsum(products)
    x = np.arange(len(elements))
    low, high = min(0.0, float(total.min())), max(0.0, float(total.max()))
    room = 0.1 * (high - low) or 1.0
    every = slice(None, None, -(-len(elements) // MAX_LABELS))
    labels = [str(i) for i in elements[every]]
    zero = horizontal_line(0, yref="y2", layer="below", **stroke(theme.control, 1))
    line_ends = np.array([x[0] - 1, *x, x[-1] + 1]), np.array([0.0, *total, total[-1]])
    steps = line(*line_ends, theme.ink, 1.5, yaxis="y2")
    steps["line"]["shape"] = "hvh"
    return style.figure(
        _strips([q, k, blank], elements, theme),
        _strips([blank, blank, products], elements, theme),
        _bars(x, elements, products, total, theme),
        steps,
        margin={"l": 54, "r": 12, "t": 4, "b": 38},
        shapes=[zero],
        annotations=[_result(float(total[-1]), style)],
        xaxis=style.axis("element of the head", range=[-0.5, len(x) - 0.5], anchor="y2")
        | {"tickvals": x[every], "ticktext": labels, "tickangle": 0, "ticklabeloverflow": "allow"},
        yaxis=style.rows(_strip_names(theme), domain=STRIPS, tickfont=style.ink(2)),
        yaxis2=style.axis(grid=True, domain=SUM, anchor="x", nticks=5)
        | {"range": [low - room, high + 2.6 * room], "ticklabeloverflow": "allow"},
    )


def _strip_names(theme: Theme) -> list[str]:
    names = {"q": theme.query, "k": theme.key}
    bold = [f'<span style="color:{c}"><b>{name}</b></span>{SPACE}' for name, c in names.items()]
    return [*bold, f"q × k{SPACE}"]


def _strips(rows: Sequence[Vector], elements: NDArray[np.intp], theme: Theme) -> Spec:
    """Three rows of cells on one colour scale; NaN rows are blank."""
    z = np.stack(rows).astype(np.float32)
    top = float(np.nanmax(np.abs(rows))) or 1.0
    texts = [[f"{name}, element {i}" for i in elements] for name in ("q", "k", "q × k")]
    gaps = {"xgap": 1 if len(elements) <= 64 else 0, "ygap": 6}
    cells = heatmap(z, -top, top, diverging_scale(theme), text=texts, showscale=False)
    return cells | gaps | hover("%{text}: %{z:.4f}")


def _bars(
    x: NDArray[np.intp], elements: NDArray[np.intp], products: Vector, total: Vector, theme: Theme
) -> Spec:
    colours = np.where(products < 0, theme.diverging[2], theme.diverging[7]).tolist()
    text = "element %{customdata[0]}: adds %{y:.4f}, the sum is now %{customdata[1]:.4f}"
    data = {"base": total - products, "customdata": np.stack([elements, total], axis=1).tolist()}
    return bars(x, products, 0.86, yaxis="y2") | data | fill(colours) | hover(text)


def _result(total: float, style: Style) -> Spec:
    text = with_minus(f"<b>q · k = {total:.3f}</b>")
    place = {"xref": "x domain", "yref": "y2 domain", "font": style.ink(2)}
    return style.note(text, 1, 1, anchor="right top") | place
