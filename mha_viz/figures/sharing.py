"""Which query heads share which key/value head."""

from collections.abc import Sequence

import plotly.graph_objects as go

from mha_viz.figures.base import HIDDEN, Spec, Style, hover
from mha_viz.figures.marks import bars, fill, inside, rectangle, squares, stroke
from mha_viz.figures.theme import NORMAL, TextSizes, Theme

QUERIES, KEYS, VALUES = 0.0, 2.0, 2.8  # where the rows are, in heights of a box
BOX, ROW = 0.84, 0.68  # the width and height of a query's box, and the height of a key's
NAMED = 6  # boxes in a row that have a letter and a number
NUMBERED = 14  # boxes that all have their number; with more, every second or fourth


def sharing_figure(
    n_heads: int,
    n_kv_heads: int,
    theme: Theme,
    *,
    selected: int | None = None,
    sizes: TextSizes = NORMAL,
) -> go.Figure:
    """H query heads over G keys and G values, with a line to those that each query head reads.

    Query head h reads key/value head h // (H / G) (Ainslie et al. 2023, section 2.2). `selected`
    and what it reads are outlined, and its line is strong.
    """
    style, share = Style(theme, sizes), n_heads // n_kv_heads
    reads = [h // share for h in range(n_heads)]
    centres = [share * g + (share - 1) / 2 for g in range(n_kv_heads)]
    lines = [
        _connection(h, centres[g]) | stroke(theme.query, 2.5)
        if h == selected
        else _connection(h, centres[g]) | stroke(theme.control, 1)
        for h, g in enumerate(reads)
    ]
    half = BOX / 2
    outlined = []
    if selected is not None:
        read = centres[reads[selected]]
        outlined = [
            (selected - half, selected + half, QUERIES - half, QUERIES + half),
            (read - share / 2 + 0.08, read + share / 2 - 0.08, KEYS - ROW / 2, VALUES + ROW / 2),
        ]
    queries = [f"query head {h} reads key/value head {g}" for h, g in enumerate(reads)]
    edge = {"color": theme.control, "width": 1}
    boxes = squares(list(range(n_heads)), [QUERIES] * n_heads, BOX, hovertext=queries)
    return style.figure(
        boxes
        | inside(_names("q", n_heads), style.mono())
        | {"marker": {"color": theme.page, "line": edge}}
        | hover("%{hovertext}"),
        _shared("k", KEYS, centres, share, theme.key, style),
        _shared("v", VALUES, centres, share, theme.value, style),
        margin={"l": 2, "r": 2, "t": 2, "b": 2},
        shapes=[*lines, *(rectangle(*box, **stroke(theme.query, 3)) for box in outlined)],
        xaxis=HIDDEN | {"range": [-0.55, n_heads - 0.45]},
        yaxis=HIDDEN | {"range": [VALUES + 0.45, QUERIES - 0.5]},
    )


def _shared(
    letter: str, y: float, centres: Sequence[float], share: int, colour: str, style: Style
) -> Spec:
    """Boxes as wide as the query heads that read them."""
    n = len(centres)
    hovers = [f"{letter} of key/value head {g}: {_readers(g, share)}" for g in range(n)]
    boxes = bars(centres, [ROW] * n, share - 0.16, base=[y - ROW / 2] * n, hovertext=hovers)
    font = style.mono(0, style.theme.page)
    return boxes | fill(colour) | inside(_names(letter, n), font) | hover("%{hovertext}")


def _names(letter: str, n: int) -> list[str]:
    if n <= NAMED:
        return [f"{letter}{i}" for i in range(n)]
    step = 1 if n <= NUMBERED else 2 if n <= 2 * NUMBERED else 4
    return [str(i) if i % step == 0 else "" for i in range(n)]


def _connection(x0: float, x1: float) -> Spec:
    ends = {"x0": x0, "x1": x1, "y0": QUERIES + BOX / 2, "y1": KEYS - ROW / 2}
    return {"type": "line", "layer": "below"} | ends


def _readers(g: int, share: int) -> str:
    first = g * share
    if share == 1:
        return f"read by query head {first}"
    return f"read by query heads {first} to {first + share - 1}"
