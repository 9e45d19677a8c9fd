"""Tokens on an axis: which of them get a label, how wide the labels are, and the axes."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from mha_viz.figures.base import BARE, Spec, Style
from mha_viz.figures.text import escape, text_width
from mha_viz.figures.window import Window
from mha_viz.tokens import shorten

MAX_TICKS = 44  # labels per side; more would overlap on 540 pixels, and hundreds take seconds
MAX_LETTERS = 12  # of a token on an axis


def token_labels(tokens: Sequence[str], limit: int = MAX_LETTERS) -> list[str]:
    """The tokens as labels: shortened to `limit` characters and escaped."""
    return [escape(shorten(token, limit)) for token in tokens]


def tick_positions(first: int, end: int, most: int = MAX_TICKS) -> list[int]:
    """The positions that get a label: all of them, or every k-th."""
    return list(range(first, end, -(-(end - first) // most)))


def apart(values: Sequence[float], least: float, low: float, high: float) -> list[float]:
    """The values moved as little as needed, so that neighbours are at least `least` apart.

    They keep their order and stay between `low` and `high` where all of them fit.
    """
    order = sorted(range(len(values)), key=lambda i: values[i])
    placed = [float(value) for value in values]
    for before, i in pairwise(order):  # upwards, then back down from the upper end
        placed[i] = max(placed[i], placed[before] + least)
    ceiling = high
    for i in reversed(order):
        placed[i] = max(min(placed[i], ceiling), low)
        ceiling = placed[i] - least
    return placed


def token_ticks(
    tokens: Sequence[str], first: int = 0, end: int | None = None, most: int = MAX_TICKS
) -> Spec:
    """The ticks of an axis of tokens, each at its position."""
    at = tick_positions(first, len(tokens) if end is None else end, most)
    return {"tickvals": at, "ticktext": token_labels([tokens[i] for i in at])}


def label_width(
    tokens: Sequence[str], style: Style, first: int = 0, end: int | None = None
) -> float:
    """The room for the widest label on an axis of tokens, in pixels."""
    at = tick_positions(first, len(tokens) if end is None else end)
    return text_width([shorten(tokens[i], MAX_LETTERS) for i in at], style.sizes.text) + 12


def row_width(tokens: Sequence[str], style: Style, limit: int = MAX_LETTERS) -> float:
    """The room for the widest label of `Style.rows`, in pixels."""
    return text_width([shorten(token, limit) for token in tokens], style.sizes.text + 1) + 14


def pattern_margin(
    queries: Sequence[str], keys: Sequence[str], style: Style, window: Window | None = None
) -> Spec:
    """The margin of `pattern_axes`: the queries at the left, the keys at the top."""
    seen = window or Window(0, len(queries), 0, len(keys))
    left = label_width(queries, style, seen.first_query, seen.end_query)
    top = label_width(keys, style, seen.first_key, seen.end_key)
    return {"l": left, "t": top, "r": 6, "b": 6}


def token_axis(style: Style, **more: Any) -> Spec:
    """An axis for tokens at their positions, which can be zoomed."""
    # Without "allow", Plotly measures each label again, which takes half of a draw.
    fixed = {"type": "linear", "constrain": "domain", "ticklabeloverflow": "allow"}
    return BARE | fixed | {"tickfont": style.mono()} | more


def pattern_axes(
    queries: Sequence[str],
    keys: Sequence[str],
    style: Style,
    window: Window | None = None,
    *,
    most: int = MAX_TICKS,
    **more: Any,
) -> Spec:
    """Both axes of a pattern or of a window of it: queries down, keys across the top."""
    seen = window or Window(0, len(queries), 0, len(keys))
    across = {"side": "top", "tickangle": -90, "constraintoward": "left"}
    down = {"scaleanchor": "x", "constraintoward": "top"}
    x = across | {"range": [seen.first_key - 0.5, seen.end_key - 0.5]}
    y = down | {"range": [seen.end_query - 0.5, seen.first_query - 0.5]}
    axis = token_axis(style, **more)
    return {
        "xaxis": axis | x | token_ticks(keys, seen.first_key, seen.end_key, most),
        "yaxis": axis | y | token_ticks(queries, seen.first_query, seen.end_query, most),
    }
