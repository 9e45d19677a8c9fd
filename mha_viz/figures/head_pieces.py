"""What a head or a row is given, in pieces of d_h numbers: as it should be, and with a bug."""

from collections.abc import Sequence

import plotly.graph_objects as go

from mha_viz.figures.base import HIDDEN, Spec, Style, hover
from mha_viz.figures.marks import inside, squares
from mha_viz.figures.text import escape
from mha_viz.figures.theme import NORMAL, TextSizes, Theme
from mha_viz.tokens import shorten

Pieces = Sequence[tuple[str, int]]  # the token that a piece was made from, and the head it is for
MAX_LETTERS = 7
PALE = 0.3  # opacity of the colours, so that text on them can be read


def head_pieces(
    right: Pieces, wrong: Pieces, theme: Theme, *, sizes: TextSizes = NORMAL
) -> go.Figure:
    """Two rows of cells with their tokens; colour and small number are those of the head."""
    style, n = Style(theme, sizes), len(right)
    numbers = [
        style.note(str(head), x + 0.43, row - 0.46, anchor="right top", font=style.mono())
        for row, pieces in enumerate((right, wrong))
        for x, (_, head) in enumerate(pieces)
    ]
    names = [
        style.note(f"<b>{name}</b>", 0, row, anchor="right middle", xref="paper", xshift=-6)
        | {"font": {"size": sizes.text + 1, "color": colour}}
        for row, (name, colour) in enumerate((("right", theme.good), ("wrong", theme.bad)))
    ]
    return style.figure(
        *(_cells(row, pieces, style) for row, pieces in enumerate((right, wrong))),
        margin={"l": 4.2 * sizes.text, "r": 2, "t": 2, "b": 2},
        annotations=[*numbers, *names],
        xaxis=HIDDEN | {"range": [-0.5, n - 0.5]},
        yaxis=HIDDEN | {"range": [1.5, -0.5]},
    )


def _cells(row: int, pieces: Pieces, style: Style) -> Spec:
    theme = style.theme
    colours = [theme.categorical[head % len(theme.categorical)] for _, head in pieces]
    labels = [escape(shorten(token, MAX_LETTERS)) for token, _ in pieces]
    texts = [[escape(token), head] for token, head in pieces]
    cells = squares(list(range(len(pieces))), [row] * len(pieces), 0.92)
    marker = {
        "color": [_pale(colour) for colour in colours],
        "line": {"color": colours, "width": 1},
    }
    words = inside(labels, style.mono()) | {"insidetextanchor": "end"}
    text = hover("%{customdata[0]}, made for head %{customdata[1]}")
    return cells | {"marker": marker, "customdata": texts} | words | text


def _pale(colour: str) -> str:
    r, g, b = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({r},{g},{b},{PALE})"
