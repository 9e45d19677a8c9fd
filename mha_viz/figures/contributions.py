"""z @ W_O as a sum: each head's z times its rows of W_O, and what all of them add to the stream."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from mha_viz.figures.base import HIDDEN, Spec, Style
from mha_viz.figures.labels import row_width
from mha_viz.figures.marks import line
from mha_viz.figures.matrices import (
    Edges,
    between,
    cells_of,
    head_cells,
    magnitude,
    rings,
    signed_cells,
)
from mha_viz.figures.theme import NORMAL, TextSizes, Theme
from mha_viz.trace import Array

WIDTH, Z, W, OUT = 1000.0, (0.0, 200.0), (245.0, 600.0), (645.0, 1000.0)  # units across
HEAD, LOWEST_HEAD, ALL_HEADS = 26.0, 12.0, 340.0  # pixels: a head, at least, all heads
SUM_ROW, GAP = 20.0, 6.0  # pixels: a row of sums, and between them
RULE = 12.0  # pixels around the line over a sum
TOP = 22
MAX_COLUMNS, MAX_ROWS = 160, 6  # cells across, and down in the rows of W_O of one head
SUMS = ("sum + b = output", "+ stream before", "= stream after")
NAMES = ("output", "stream before", "stream after")


def contributions_figure(
    z: Array,
    W_O: Array,
    by_head: Array,
    sums: tuple[Array, Array, Array],
    theme: Theme,
    *,
    heads: Sequence[int],
    selected: int,
    sizes: TextSizes = NORMAL,
) -> go.Figure:
    """A row for each head: `z` `[H, d_h]` @ `W_O` `[H, d_h, C]` = `by_head` `[H, C]`.

    `sums` are the output, and the residual stream before and after it is added, `[C]` each. At the
    right of each row of C numbers is its length. The head with index `selected` is ringed.
    """
    style, H, row = Style(theme, sizes), len(heads), _row(len(heads))
    high = row - (2 if row > 16 else 1)
    tops = [row * h for h in range(H)]
    ends = _sum_tops(H)
    top = magnitude(np.concatenate([by_head, sums[0][None]]))
    stream_top = magnitude(np.stack(sums[1:]))
    traces = [_signed(by_head[h], tops[h], high, top, f"head {heads[h]}", theme) for h in range(H)]
    for name, values, y, scale in zip(SUMS, sums, ends, (top, stream_top, stream_top), strict=True):
        traces.append(
            _signed(values, y, SUM_ROW, scale, name.rpartition("= ")[2].lstrip("+ "), theme)
        )
    ringed = [
        shape
        for x in (Z, W, OUT)
        for shape in rings(x, (tops[selected], tops[selected] + high), theme.query, theme)
    ]
    lengths = [float(np.linalg.norm(values)) for values in (*by_head, *sums)]
    return style.figure(
        *_of_heads(z[:, None], Z, tops, high, heads, "z", 1, theme),
        *_of_heads(W_O, W, tops, high, heads, "W_O", MAX_ROWS, theme),
        *traces,
        *(_rule(y - RULE / 2, theme) for y in (ends[0], ends[2])),
        margin={"l": row_width([f"head {max(heads)}"], style), "r": 62, "t": TOP, "b": 4},
        shapes=ringed,
        annotations=[
            *_titles(ends, (tops[0] + tops[-1] + high) / 2, style),
            *_lengths(lengths, [*(t + high / 2 for t in tops), *(y + SUM_ROW / 2 for y in ends)],
                      selected, style),
        ],
        xaxis=HIDDEN | {"range": [-2, WIDTH + 2]},
        yaxis=style.axis(range=[ends[-1] + SUM_ROW + 2, -1], ticklabeloverflow="allow")
        | {"tickvals": [t + high / 2 for t in tops], "tickfont": style.mono()}
        | {"ticktext": [_head_name(heads[h], h == selected, style) for h in range(H)]}
        | {"ticklabelstandoff": 4},
    )  # fmt: skip


def contributions_height(H: int) -> int:
    """The height of the figure for H heads, in pixels."""
    return int(TOP + _sum_tops(H)[-1] + SUM_ROW + 7)


def _row(H: int) -> float:
    return max(LOWEST_HEAD, min(HEAD, ALL_HEADS / H))


def _sum_tops(H: int) -> list[float]:
    """Where the rows of the output and of the stream begin."""
    output = _row(H) * H + RULE
    before = output + SUM_ROW + GAP
    return [output, before, before + SUM_ROW + RULE]


def _head_name(head: int, chosen: bool, style: Style) -> str:
    return style.selected(f"head {head}") if chosen else f"head {head}"


def _signed(values: Array, y: float, high: float, top: float, name: str, theme: Theme) -> Spec:
    cells = cells_of(values[None], 1, MAX_COLUMNS)
    n = cells.values.shape[1]
    drawn = signed_cells(cells, between(*OUT, n), between(y, y + high, 1), top, theme, name)
    text = drawn["hovertemplate"].replace("[%{customdata[1]}, ", "[")
    return drawn | {"hovertemplate": text}


def _of_heads(
    values: Array,
    x: tuple[float, float],
    tops: Sequence[float],
    high: float,
    heads: Sequence[int],
    name: str,
    most_rows: int,
    theme: Theme,
) -> list[Spec]:
    """`values` `[H, r, m]`, one matrix for each head in its colour, all on one scale."""
    top, traces = magnitude(values), []
    for h, head in enumerate(heads):
        cells = cells_of(values[h], most_rows, MAX_COLUMNS)
        r, m = cells.values.shape
        edges: tuple[Edges, Edges] = between(*x, m), between(tops[h], tops[h] + high, r)
        named = f"{name} of head {head}"
        traces.append(head_cells([cells], [head], [edges[0]], edges[1], theme, top=top, name=named))
    return traces


def _titles(ends: Sequence[float], middle: float, style: Style) -> list[Spec]:
    bold, sign = {"font": style.ink(1)}, {"font": style.mono(2)}
    columns = ((Z, "<b>z</b>"), (W, "<b>W_O</b>"), (OUT, "<b>z @ W_O</b>"))
    notes = [
        style.note(text, (x[0] + x[1]) / 2, 0, anchor="center bottom") | bold for x, text in columns
    ]
    for text, x in (("<b>@</b>", (Z[1] + W[0]) / 2), ("<b>=</b>", (W[1] + OUT[0]) / 2)):
        notes.append(style.note(text, x, middle, anchor="center middle") | sign)
    notes.append(style.note("length", 1, 0, anchor="left bottom") | {"xref": "paper", "xshift": 4})
    for text, y in zip(SUMS, ends, strict=True):
        note = style.note(text, OUT[0] - 8, y + SUM_ROW / 2, anchor="right middle")
        notes.append(note | {"font": style.ink()})
    return notes


def _lengths(
    lengths: Sequence[float], places: Sequence[float], selected: int, style: Style
) -> list[Spec]:
    """The length of each row at its right; the selected head's and the output's stand out."""
    notes = []
    for n, (length, y) in enumerate(zip(lengths, places, strict=True)):
        text = f"{length:.2f}"
        note = style.note(
            style.selected(text) if n == selected else text, 1, y, anchor="left middle"
        )
        notes.append(note | {"xref": "paper", "xshift": 4, "font": style.mono()})
    return notes


def _rule(y: float, theme: Theme) -> Spec:
    return line(np.array(OUT), np.full(2, y), theme.ink, 1.5)
