"""Tokens on an axis: which of them get a label, the room that the longest takes, and the axes."""

from collections.abc import Sequence
from unicodedata import east_asian_width

from mha_viz.figures.text import literal
from mha_viz.figures.theme import MONO, Theme, Type
from mha_viz.figures.window import Window
from mha_viz.tokens import shorten

MAX_TICKS = 44  # labels a side, which touch on 540 pixels; Plotly takes seconds for hundreds
LABEL = 12  # characters of a token on an axis


def tick_positions(first: int, end: int, most: int = MAX_TICKS) -> list[int]:
    """The positions that get a label: all of them, or every k-th."""
    return list(range(first, end, -(-(end - first) // most)))


def token_ticks(
    tokens: Sequence[str], first: int = 0, end: int | None = None, most: int = MAX_TICKS
) -> dict[str, object]:
    """The ticks of an axis of tokens, each at its position."""
    at = tick_positions(first, len(tokens) if end is None else end, most)
    return {"tickvals": at, "ticktext": [literal(shorten(tokens[i], LABEL)) for i in at]}


def names(tokens: Sequence[str], on: str = "xy", block: int = 1) -> dict[str, object]:
    """What a figure keeps of the tokens on its axes `on` for whoever takes its numbers away.

    An axis writes some of the labels, and shortens them; a cell may stand for `block` tokens.
    """
    return {"tokens": list(tokens), "on": on, "block": block}


def room(tokens: Sequence[str], sizes: Type, first: int = 0, end: int | None = None) -> float:
    """Pixels for the longest label that is shown; a wide letter takes two places.

    Plotly's own measuring lays out twice.
    """
    at = tick_positions(first, len(tokens) if end is None else end)
    shown = [shorten(tokens[i], LABEL) for i in at]
    widest = max(sum(2 if east_asian_width(c) in "WF" else 1 for c in label) for label in shown)
    return widest * 0.6 * sizes.tick + 12  # the advance of a monospaced letter is 0.6 em


def pattern_axes(
    tokens: Sequence[str], seen: Window, theme: Theme, sizes: Type, most: int = MAX_TICKS
) -> dict[str, dict[str, object]]:
    """Both axes of a pattern, or of a window of it: queries down, keys across the top."""
    shared: dict[str, object] = {
        "showgrid": False, "zeroline": False, "showline": False, "ticks": "",
        "constrain": "domain", "type": "linear",
        "ticklabeloverflow": "allow",  # else Plotly measures each label again: half of a draw
        "tickfont": {"size": sizes.tick, "family": MONO, "color": theme.ink},
    }  # fmt: skip
    keys = {
        "side": "top", "tickangle": -90, "constraintoward": "left",
        "range": [seen.first_key - 0.5, seen.end_key - 0.5],
    }  # fmt: skip
    queries = {
        "scaleanchor": "x", "constraintoward": "top",
        "range": [seen.end_query - 0.5, seen.first_query - 0.5],
    }  # fmt: skip
    return {
        "xaxis": shared | keys | token_ticks(tokens, seen.first_key, seen.end_key, most),
        "yaxis": shared | queries | token_ticks(tokens, seen.first_query, seen.end_query, most),
    }
