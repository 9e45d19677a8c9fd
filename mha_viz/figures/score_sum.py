"""One score: a row of q, a row of k, their products, and the sum that grows to the dot product."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from mha_viz.figures.base import HIDDEN, Spec, Style, hover
from mha_viz.figures.labels import label_width, pattern_axes, row_width, token_labels
from mha_viz.figures.marks import bars, fill, gaps, heatmap, line, stroke
from mha_viz.figures.matrices import Cells, between, magnitude, rings, signed_cells
from mha_viz.figures.pooling import pool_by_magnitude
from mha_viz.figures.text import with_minus
from mha_viz.figures.theme import NORMAL, TextSizes, Theme, diverging_scale
from mha_viz.figures.window import whole
from mha_viz.trace import Array

Sums = NDArray[np.float64]
STRIP, WORDS, BARS, SUM = 24.0, 22.0, 84.0, 76.0  # heights in pixels
K_AT = STRIP + 4
BARS_AT = K_AT + STRIP + WORDS
SUM_AT = BARS_AT + BARS + 12
HEIGHT = int(SUM_AT + SUM + 16)
RESULT = 84.0  # pixels at the right, for the sum and the score


def score_sum_figure(
    q: Array,
    k: Array,
    names: tuple[str, str],
    theme: Theme,
    *,
    scale: float,
    score: float,
    sizes: TextSizes = NORMAL,
) -> go.Figure:
    """`q` and `k` `[d_h]` of the tokens `names`, their products, the sum of these, and the score.

    The element with the largest product is ringed. `score` is the sum times `scale`.
    """
    style, d_h = Style(theme, sizes), len(q)
    products = q * k
    sums = np.cumsum(products, dtype=np.float64)
    most = int(np.abs(products).argmax())
    zero, per_pixel = _place(products, BARS_AT, BARS)
    low, sum_per_pixel = _place(np.array([0.0, *sums]), SUM_AT, SUM)
    end = low - float(sums[-1]) * sum_per_pixel
    top = magnitude(np.concatenate([q, k]))
    labels = [f"<b>{n}</b> {t}" for n, t in zip("qk", token_labels(names), strict=True)]
    words = with_minus(f"{q[most]:.2f} × {k[most]:.2f} = {products[most]:.2f}")
    anchor = "left" if most < d_h / 3 else "right" if most > 2 * d_h / 3 else "center"
    ringed = rings((most - 0.5, most + 0.5), (0, K_AT + STRIP), theme.query, theme)
    return style.figure(
        _strip(q, 0, top, theme, "q"),
        _strip(k, K_AT, top, theme, "k"),
        _bars(q, k, sums, zero, per_pixel, theme),
        _sum_line(sums, low, sum_per_pixel, theme),
        margin={"l": max(row_width([f"q {n}" for n in names], style), 84), "r": RESULT}
        | {"t": 4, "b": 4},
        shapes=[*ringed, *(_rule(y, theme) for y in (zero, low))],
        annotations=[
            style.note(words, most, K_AT + STRIP + 3, anchor=f"{anchor} top", font=style.mono()),
            _result(float(sums[-1]), d_h, scale, score, end, style),
        ],
        xaxis=HIDDEN | {"range": [-0.5, d_h - 0.5]},
        yaxis=style.axis(range=[HEIGHT - 8, -1], tickfont=style.mono())
        | {"tickvals": [STRIP / 2, K_AT + STRIP / 2, zero, low], "ticklabeloverflow": "allow"}
        | {"ticklabelstandoff": 4}
        | {"ticktext": [*labels, "q × k", "sum so far"]},
    )


def scores_figure(
    scores: Array,
    tokens: Sequence[str],
    theme: Theme,
    *,
    query: int,
    key: int,
    sizes: TextSizes = NORMAL,
) -> go.Figure:
    """The scores `[T, T]` of a head before the mask, blue below zero and orange above.

    The cell of `query` and `key` is ringed, and both are named in bold.
    """
    style, seen = Style(theme, sizes), whole(len(tokens))
    block = seen.block
    part = pool_by_magnitude(scores, block)
    top = magnitude(scores)
    cells = heatmap(part, -top, top, diverging_scale(theme), block=block, showscale=False)
    side = label_width(tokens, style)
    axes = pattern_axes(tokens, tokens, style, seen, most=20, fixedrange=True)
    for axis, chosen in (("xaxis", key), ("yaxis", query)):
        axes[axis] |= _with_chosen(axes[axis], tokens, chosen, style)
    column, row = (chosen // block * block for chosen in (key, query))
    ringed = rings((column - 0.5, column + block - 0.5), (row - 0.5, row + block - 0.5),
                   theme.query, theme)  # fmt: skip
    pooled = f", the largest of {block} × {block}" if block > 1 else ""
    return style.figure(
        cells | gaps(part) | hover(f"from %{{y}} to %{{x}}: %{{z:.4f}}{pooled}"),
        margin={"l": side, "t": side, "r": 4, "b": 4},
        shapes=ringed,
        **axes,
    )


def _with_chosen(axis: Spec, tokens: Sequence[str], chosen: int, style: Style) -> Spec:
    """The ticks of an axis of tokens with the chosen one in bold, and none close to it."""
    at = axis["tickvals"]
    every = at[1] - at[0] if len(at) > 1 else 1
    kept = sorted({t for t in at if abs(t - chosen) >= every} | {chosen})
    labels = dict(zip(kept, token_labels([tokens[t] for t in kept]), strict=True))
    labels[chosen] = style.selected(labels[chosen])
    return {"tickvals": kept, "ticktext": list(labels.values())}


def _strip(values: Array, y: float, top: float, theme: Theme, name: str) -> Spec:
    """A row of cells, 24 pixels high."""
    n = len(values)
    places = np.stack([np.zeros(n), np.arange(n)], axis=-1)[None]
    cells = Cells(values[None], places.astype(np.float32))
    drawn = signed_cells(cells, between(-0.5, n - 0.5, n), between(y, y + STRIP, 1), top, theme, "")
    text = hover(f"{name}, element %{{customdata[2]}}: %{{customdata[0]:.4f}}")
    return drawn | text | {"xgap": 1 if n <= 64 else 0}


def _place(values: Array | Sums, at: float, room: float) -> tuple[float, float]:
    """Where zero lies so that all values fit into `room` pixels, and the pixels per unit."""
    low, high = min(0.0, float(values.min())), max(0.0, float(values.max()))
    per_unit = room / ((high - low) or 1.0)
    return at + high * per_unit, per_unit


def _bars(q: Array, k: Array, sums: Sums, zero: float, per_unit: float, theme: Theme) -> Spec:
    products = q * k
    colours = np.where(products < 0, theme.diverging[2], theme.diverging[7]).tolist()
    numbers = np.stack([np.arange(len(q)), q, k, products, sums], axis=1).tolist()
    text = (
        "element %{customdata[0]}: %{customdata[1]:.4f} × %{customdata[2]:.4f} = "
        "%{customdata[3]:.4f}<br>sum so far %{customdata[4]:.4f}"
    )
    data = {"base": np.full(len(q), zero), "customdata": numbers}
    return bars(np.arange(len(q)), -products * per_unit, 0.8) | data | fill(colours) | hover(text)


def _sum_line(sums: Sums, low: float, per_unit: float, theme: Theme) -> Spec:
    """The sum as steps: it starts at zero and changes at each element."""
    x = np.repeat(np.arange(len(sums) + 1) - 0.5, 2)[1:-1]
    y = low - per_unit * np.repeat(sums, 2)
    return line(np.array([-0.5, *x]), np.array([low, *y]), theme.ink, 2)


def _result(total: float, d_h: int, scale: float, score: float, end: float, style: Style) -> Spec:
    """The sum beside the end of its line, and what the scale makes of it."""
    factor = f"÷ √{d_h}" if np.isclose(scale, d_h**-0.5) else f"× {scale:.3g}"
    text = with_minus(f"<b>{total:.2f}</b><br>{factor}<br>= ") + style.selected(
        with_minus(f"{score:.2f}")
    )
    y = min(max(end, SUM_AT + 16), HEIGHT - 34)
    note = style.note(text, 1, y, anchor="left middle", font=style.mono(1))
    return note | {"xref": "paper", "xshift": 4, "align": "left"}


def _rule(y: float, theme: Theme) -> Spec:
    place = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": y, "y1": y}
    return place | {"layer": "below"} | stroke(theme.control, 1)
