"""Tokens in a line that wraps, each shaded by a number."""

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from mha_viz.app.messages import escaped
from mha_viz.figures.theme import Theme, sequential_colour
from mha_viz.tokens import shorten


@dataclass(frozen=True, slots=True)
class Chip:
    """A token, the number below it, and its position on the colour scale (None: no colour)."""

    label: str
    number: str = ""
    shade: float | None = None
    outlined: bool = False  # in orange
    dimmed: bool = False  # filled at 25% opacity
    tooltip: str = ""


def chips(items: Sequence[Chip], theme: Theme) -> None:
    """Draws the tokens."""
    st.html(f'<div class="chips">{"".join(_chip(item, theme) for item in items)}</div>')


def _chip(item: Chip, theme: Theme) -> str:
    style = ""
    if item.shade is not None:
        fill, strong = sequential_colour(theme, item.shade), item.shade >= theme.ink_flips_at
        if item.dimmed:
            fill, strong = f"color-mix(in srgb, {fill} 25%, transparent)", False
        style = f' style="background:{fill}{f";color:{theme.ink_on_strong}" if strong else ""}"'
    outlined = ' class="marked"' if item.outlined else ""
    label, number = escaped(shorten(item.label)), item.number
    return f'<span title="{escaped(item.tooltip)}"{outlined}{style}>{label}<i>{number}</i></span>'
