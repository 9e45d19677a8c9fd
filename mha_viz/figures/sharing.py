"""Which query heads share which key/value head."""

from collections.abc import Sequence

import plotly.graph_objects as go

from mha_viz.figures.base import HIDDEN, Spec, Style, hover
from mha_viz.figures.marks import fill, frame, inside, squares, stroke
from mha_viz.figures.shapes import head_colours
from mha_viz.figures.theme import NORMAL, TextSizes, Theme

TOP, BOTTOM = 0.0, 2.2  # where the two rows are, in heights of a box
BOX = 0.84  # width and height of a box, in units
FEWEST = 8  # minimum number of heads to leave room for, so that boxes do not grow wide
FEW = 16  # boxes in a row that are all numbered; with more, every second or fourth


def sharing_figure(
    n_heads: int,
    n_kv_heads: int,
    theme: Theme,
    *,
    selected: int | None = None,
    sizes: TextSizes = NORMAL,
) -> go.Figure:
    """H query heads over G key/value heads, a line from each to the one that it reads.

    Head h reads key/value head h // (H / G) (Ainslie et al. 2023, section 2.2). `selected` and what
    it reads are outlined.
    """
    style, colours = Style(theme, sizes), head_colours(theme, n_heads)
    share = n_heads // n_kv_heads
    reads = [h // share for h in range(n_heads)]
    centres = [share * g + (share - 1) / 2 for g in range(n_kv_heads)]
    lines = [
        _connection(h, centres[g]) | stroke(colours[h], 4 if h == selected else 2)
        for h, g in enumerate(reads)
    ]
    outlined = []
    if selected is not None:
        outlined = [(float(selected), TOP), (centres[reads[selected]], BOTTOM)]
    queries = [f"query head {h} reads key/value head {g}" for h, g in enumerate(reads)]
    shared = [f"key/value head {g}: {_readers(g, share)}" for g in range(n_kv_heads)]
    return style.figure(
        _boxes(range(n_heads), TOP, queries, style) | fill(colours, 0.4),
        _boxes(centres, BOTTOM, shared, style) | fill(theme.control, 0.25),
        margin={"l": 44, "r": 4, "t": 4, "b": 4},
        shapes=[*lines, *(frame(x, y, theme.query, BOX / 2 + 0.03) for x, y in outlined)],
        annotations=[_row_name("q", TOP, style), _row_name("k, v", BOTTOM, style)],
        xaxis=HIDDEN | {"range": [-0.5, max(n_heads, FEWEST) - 0.5]},
        yaxis=HIDDEN | {"range": [BOTTOM + 0.5, TOP - 0.5]},
    )


def _boxes(centres: Sequence[float], y: float, hovers: list[str], style: Style) -> Spec:
    n = len(centres)
    step = 1 if n <= FEW else 2 if n <= 2 * FEW else 4
    numbers = [str(i) if i % step == 0 else "" for i in range(n)]
    boxes = squares(list(centres), [y] * n, BOX, hovertext=hovers)
    return boxes | inside(numbers, style.mono()) | hover("%{hovertext}")


def _connection(x0: float, x1: float) -> Spec:
    ends = {"x0": x0, "x1": x1, "y0": TOP + BOX / 2, "y1": BOTTOM - BOX / 2}
    return {"type": "line", "layer": "below"} | ends


def _row_name(text: str, y: float, style: Style) -> Spec:
    font = style.mono(1, style.theme.muted)
    return style.note(text, 0, y, anchor="right middle", xref="paper", xshift=-6, font=font)


def _readers(g: int, share: int) -> str:
    first = g * share
    if share == 1:
        return f"read by query head {first}"
    return f"read by query heads {first} to {first + share - 1}"
