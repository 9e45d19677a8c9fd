"""What a key/value cache of one layer holds: a row of keys and a row of values for each group."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from mha_viz.figures.base import Spec, Style, hover
from mha_viz.figures.labels import token_labels
from mha_viz.figures.marks import inside, rectangle, squares, stroke
from mha_viz.figures.text import text_width
from mha_viz.figures.theme import NORMAL, TextSizes, Theme, sequential_colour
from mha_viz.trace import Array

CELL, GROUP = 0.9, 2.35  # the size of a cell; from one group to the next, in cell heights
ROW = 21  # pixels of a cell's height
ANGLE = -90  # of the tokens, in degrees
MAX_LETTERS = 9  # of a token under its column
LEAST = 0.005  # smaller weights have no number


@dataclass(frozen=True, slots=True)
class Group:
    """A key/value head: its number, and the query heads that read it."""

    number: int
    readers: Sequence[int]


@dataclass(frozen=True, slots=True, eq=False)
class CacheContents:
    """The cache after a step, from position `first` on; later positions are empty."""

    tokens: Sequence[str]  # of all drawn positions; those of empty ones are not shown
    first: int
    n_written: int  # positions from 0 that are in the cache
    n_new: int  # how many of them this step wrote
    weights: Array  # of the selected query head's newest query, for the drawn positions


def contents_figure(
    contents: CacheContents,
    groups: Sequence[Group],
    head: int,
    theme: Theme,
    *,
    sizes: TextSizes = NORMAL,
) -> go.Figure:
    """Cells of positions (across) and groups (down); the cells written in this step are ringed.

    The cells that query head `head` reads have the colour of its weights, and its numbers.
    """
    style, n = Style(theme, sizes), len(contents.tokens)
    written = range(max(0, min(n, contents.n_written - contents.first)))
    empty = range(len(written), n)
    new = [i for i in written if contents.first + i >= contents.n_written - contents.n_new]
    tops = [GROUP * row for row in range(len(groups))]
    names = [f"{letter}{group.number}" for group in groups for letter in "kv"]
    colours = [colour for _ in groups for colour in (theme.key, theme.value)]
    ticks = [
        f'<span style="color:{colour}">{name}</span>'
        for name, colour in zip(names, colours, strict=True)
    ]
    labels = token_labels([contents.tokens[i] for i in written], MAX_LETTERS)
    newest = labels[-1] if new else ""
    ticked = list(written)[: -1 if new else None]  # the newest has a label of its own
    rings = [
        rectangle(new[0] - 0.5, new[-1] + 0.5, top - 0.5, top + 1.5, **stroke(theme.query, 3))
        for top in tops
        if new
    ]
    notes = [_readers(group, top, head, style) for group, top in zip(groups, tops, strict=True)]
    foot = {"yref": "paper", "yshift": -4}
    if new:
        label = style.note(
            style.selected(newest), new[-1], 0, anchor="right top", font=style.mono()
        )
        notes.append(label | foot | {"textangle": ANGLE})
    if len(empty) > 1:
        note = style.note("not written yet", n - 0.5, 0, anchor="right top")
        notes.append(note | foot)
    bottom = tops[-1] + 1.55
    return style.figure(
        *_cells(contents, groups, tops, head, written, empty, style),
        margin={"l": 128, "r": 4, "t": 4, "b": _foot(sizes)},
        shapes=rings,
        annotations=notes,
        uniformtext={"minsize": sizes.text - 3, "mode": "hide"},
        xaxis=style.axis(range=[-0.55, n - 0.45], tickangle=ANGLE, tickfont=style.mono())
        | {"tickvals": ticked, "ticktext": [labels[i] for i in ticked]},
        yaxis=style.axis(range=[bottom, -0.55], tickfont=style.mono(1))
        | {"tickvals": [top + i for top in tops for i in (0, 1)], "ticktext": ticks},
    )


def height(n_groups: int, sizes: TextSizes = NORMAL) -> int:
    """The height for this number of groups, in pixels."""
    return round(ROW * (GROUP * (n_groups - 1) + 2.1)) + 4 + round(_foot(sizes))


def _foot(sizes: TextSizes) -> float:
    return text_width(["m" * MAX_LETTERS], sizes.text) + 12


def _cells(
    contents: CacheContents,
    groups: Sequence[Group],
    tops: Sequence[float],
    head: int,
    written: range,
    empty: range,
    style: Style,
) -> list[Spec]:
    """The cells that the head reads, then those of other groups, then the empty ones."""
    theme = style.theme
    read: list[Spec] = []
    others: list[tuple[int, float, str]] = []
    for group, top in zip(groups, tops, strict=True):
        for letter, y in (("k", top), ("v", top + 1)):
            hovers = [
                f"{letter} of group {group.number}, position {contents.first + i}" for i in written
            ]
            if head in group.readers:
                read.append(_read(contents, letter, y, hovers, written, head, style))
            else:
                others += [(i, y, text) for i, text in zip(written, hovers, strict=True)]
    hollow = [(i, y, "not written yet") for top in tops for y in (top, top + 1) for i in empty]
    edge = {"color": theme.hairline, "width": 1}
    return [
        *read,
        _plain(others, {"color": theme.hairline, "opacity": 0.75}),
        _plain(hollow, {"color": theme.page, "line": edge}),
    ]


def _read(
    contents: CacheContents,
    letter: str,
    y: float,
    hovers: Sequence[str],
    written: range,
    head: int,
    style: Style,
) -> Spec:
    """A row of the group that the head reads; the keys carry the numbers."""
    theme = style.theme
    weights = np.nan_to_num(contents.weights[: len(written)])
    roots = np.sqrt(weights)
    texts = [f"{w:.2f}".removeprefix("0") if letter == "k" and w >= LEAST else "" for w in weights]
    inks = [theme.ink_on_strong if root > theme.ink_flips_at else theme.ink for root in roots]
    cells = squares(
        list(written),
        [y] * len(written),
        CELL,
        hovertext=[
            f"{text}: weight of q{head} {w:.3f}" for text, w in zip(hovers, weights, strict=True)
        ],
    )
    font = style.mono(-1) | {"color": inks}
    fit = {"constraintext": "inside"}
    colour = {"marker": {"color": [sequential_colour(theme, float(r)) for r in roots]}}
    return cells | colour | inside(texts, font) | fit | hover("%{hovertext}")


def _plain(cells: Sequence[tuple[int, float, str]], marker: Spec) -> Spec:
    x, y, texts = ([cell[i] for cell in cells] for i in range(3))
    return squares(x, y, CELL, hovertext=texts, marker=marker) | hover("%{hovertext}")


def _readers(group: Group, top: float, head: int, style: Style) -> Spec:
    """The name of a group and the query heads that read it, left of its rows."""
    heads = [f"q{h}" for h in group.readers]
    if len(heads) > 3:
        heads = [heads[0], "…", heads[-1]]
    mine = head in group.readers
    name = f"group {group.number}"
    shown = [style.selected(h) if h == f"q{head}" else h for h in heads]
    if mine and f"q{head}" not in heads:
        shown = [heads[0], "…", style.selected(f"q{head}"), "…", heads[-1]]
    text = f"{style.selected(name) if mine else name}<br>{' '.join(shown)}"
    place = {"xref": "paper", "xshift": -122, "align": "left"}
    return style.note(text, 0, top + 0.5, anchor="left middle") | place
