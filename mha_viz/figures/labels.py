"""Tokens on an axis: which of them get a label, and the room that the longest takes."""

from collections.abc import Sequence
from unicodedata import east_asian_width

from mha_viz.figures.heatmap import LABEL, tick_positions
from mha_viz.figures.text import literal
from mha_viz.figures.theme import Type
from mha_viz.tokens import shorten


def token_ticks(tokens: Sequence[str]) -> dict[str, object]:
    """The ticks of an axis of tokens, each at its position: all of them, or every k-th."""
    at = tick_positions(0, len(tokens))
    return {"tickvals": at, "ticktext": [literal(shorten(tokens[i], LABEL)) for i in at]}


def room(tokens: Sequence[str], sizes: Type) -> float:
    """Pixels for the longest label that is shown; a wide letter takes two places."""
    shown = [shorten(tokens[i], LABEL) for i in tick_positions(0, len(tokens))]
    widest = max(sum(2 if east_asian_width(c) in "WF" else 1 for c in label) for label in shown)
    return widest * 0.6 * sizes.tick + 12  # the advance of a monospaced letter is 0.6 em
