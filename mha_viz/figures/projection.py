"""x @ W_QKV = q k v: a row of x meets the columns of W, and each number lies where they cross.

x stands at the left and W above the product, so that its rows are those of x and its columns those
of W.
"""

from collections.abc import Sequence

import plotly.graph_objects as go

from mha_viz.figures.base import HIDDEN, Spec, Style
from mha_viz.figures.labels import row_width, token_labels
from mha_viz.figures.matrices import (
    between,
    cells_of,
    head_cells,
    labelled_rows,
    magnitude,
    rings,
    signed_cells,
)
from mha_viz.figures.theme import NORMAL, TextSizes, Theme
from mha_viz.trace import Array

WIDTH, X_WIDTH, W_FROM = 1000.0, 190.0, 225.0  # units across: all of it, x, where W begins
PART_GAP = 10.0  # units between q, k and v
W_HEIGHT, BETWEEN, UNDER = 150.0, 26.0, 24.0  # pixels: W, between W and the product, under it
MAX_X, MAX_ROWS, MAX_W_ROWS, MAX_COLUMNS = 96, 64, 32, 288  # cells
MOST_NAMES = 18  # numbers of heads that fit a phone


def projection_figure(
    x: Array,
    W: Array,
    qkv: Array,
    tokens: Sequence[str],
    theme: Theme,
    *,
    heads: Sequence[int],
    n_kv_heads: int,
    query: int,
    selected: int,
    sizes: TextSizes = NORMAL,
) -> go.Figure:
    """`x` `[T, C]`, `W` `[C, (H + 2G) d_h]` and their product `qkv` `[T, (H + 2G) d_h]`.

    `heads` names the H heads in the order of their columns; G = `n_kv_heads` key/value heads follow
    for k, then for v. Ringed: row `query`, the columns of q of the head with index `selected`, and,
    in grey, the columns of the k and v that it reads.
    """
    style, T, H = Style(theme, sizes), len(x), len(heads)
    n = H + 2 * n_kv_heads
    owners = [*heads, *list(heads[:: H // n_kv_heads]) * 2]
    blocks = _blocks(H, n_kv_heads)
    rows = product_height(T)
    top, bottom = W_HEIGHT + BETWEEN, W_HEIGHT + BETWEEN + rows
    width = W.shape[1] // n
    per_block = max(2, MAX_COLUMNS // n)

    def matrix(values: Array, most: int, y: tuple[float, float], name: str) -> Spec:
        parts = [values[:, b * width : (b + 1) * width] for b in range(n)]
        cells = [cells_of(p, most, per_block, first_column=b * width) for b, p in enumerate(parts)]
        edges = [between(*block, c.values.shape[1]) for block, c in zip(blocks, cells, strict=True)]
        y_edges = between(*y, len(cells[0].values))
        return head_cells(cells, owners, edges, y_edges, theme, top=magnitude(values), name=name)

    x_cells = cells_of(x, MAX_ROWS, MAX_X)
    x_edges = between(0, X_WIDTH, x_cells.values.shape[1])
    y_edges = between(top, bottom, len(x_cells.values))
    row = (top + rows * query / T, top + rows * (query + 1) / T)
    group = selected * n_kv_heads // H
    read = [H + group, H + n_kv_heads + group]
    ringed = rings((0, X_WIDTH), row, theme.query, theme)
    for block in read:
        for y in ((0, W_HEIGHT), row):
            ringed += rings(blocks[block], y, theme.muted, theme, 1.5)
    for y in ((0, W_HEIGHT), row):
        ringed += rings(blocks[selected], y, theme.query, theme)
    return style.figure(
        signed_cells(x_cells, x_edges, y_edges, magnitude(x), theme, "x"),
        matrix(W, MAX_W_ROWS, (0, W_HEIGHT), "W_QKV"),
        matrix(qkv, MAX_ROWS, (top, bottom), "q k v"),
        margin={"l": row_width(tokens, style), "r": 4, "t": 24, "b": UNDER},
        shapes=ringed,
        annotations=[
            *_names(blocks, H, n_kv_heads, owners, selected, style),
            *_signs(bottom, style),
        ],
        xaxis=HIDDEN | {"range": [-2, WIDTH + 2]},
        yaxis=labelled_rows(token_labels(tokens), query, top, rows / T, style, range=[bottom, 0]),
    )


def product_height(T: int) -> float:
    """The height of a matrix of T rows, in pixels: 18 a row, less for many."""
    return float(min(18 * T, 300))


def projection_height(T: int) -> int:
    """The height of the figure for T tokens, in pixels."""
    return int(24 + W_HEIGHT + BETWEEN + product_height(T) + UNDER)


def _blocks(H: int, G: int) -> list[tuple[float, float]]:
    """Where the columns of each head begin and end, from left to right: q, then k, then v."""
    pitch = (WIDTH - W_FROM - 2 * PART_GAP) / (H + 2 * G)
    starts = [
        W_FROM + pitch * block + PART_GAP * ((block >= H) + (block >= H + G))
        for block in range(H + 2 * G)
    ]
    gap = min(1.5, 0.1 * pitch)
    return [(start, start + pitch - gap) for start in starts]


def _names(
    blocks: Sequence[tuple[float, float]],
    H: int,
    G: int,
    owners: Sequence[int],
    selected: int,
    style: Style,
) -> list[Spec]:
    """W_Q, W_K, W_V above; q, k, v below; the number of each head between the two matrices."""
    notes = []
    for name, first, end in (("q", 0, H), ("k", H, H + G), ("v", H + G, H + 2 * G)):
        middle = (blocks[first][0] + blocks[end - 1][1]) / 2
        above, below = f"<b>W_{name.upper()}</b>", f"<b>{name}</b>"
        bold = {"font": style.ink(1)}
        notes.append(style.note(above, middle, 0, anchor="center bottom") | bold)
        low = {"yref": "paper", "yshift": -2}
        notes.append(style.note(below, middle, 0, anchor="center top") | bold | low)
    every = -(-len(blocks) // MOST_NAMES)
    for block, ((left, right), owner) in enumerate(zip(blocks, owners, strict=True)):
        chosen, beside = block == selected, 0 < abs(block - selected) < every
        if not chosen and (block % every or beside):
            continue
        text = style.selected(str(owner)) if chosen else str(owner)
        place = (left + right) / 2, W_HEIGHT + BETWEEN / 2
        notes.append(style.note(text, *place, anchor="center middle", font=style.mono()))
    return notes


def _signs(bottom: float, style: Style) -> list[Spec]:
    """What the empty corner says, and the name of x."""
    font = style.ink(2) | {"family": style.mono()["family"]}
    corner = style.note("<b>@</b>", W_FROM - 17, W_HEIGHT - 4, anchor="center bottom", font=font)
    name = {"yref": "paper", "yshift": -2, "font": style.ink(1)}
    x = style.note("<b>x</b>", X_WIDTH / 2, 0, anchor="center top") | name
    heads = style.note("head", W_FROM - 6, W_HEIGHT + BETWEEN / 2, anchor="right middle")
    equals = style.note("<b>=</b>", W_FROM - 17, (W_HEIGHT + BETWEEN + bottom) / 2,
                        anchor="center middle", font=font)  # fmt: skip
    return [corner, equals, x, heads]
