"""Tokens in a line that breaks where the screen ends, each shaded by a number."""

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from mha_viz.app.messages import escaped
from mha_viz.figures.theme import Theme, between
from mha_viz.tokens import shorten


@dataclass(frozen=True, slots=True)
class Chip:
    """A token, the number below it, and where on the colour scale it lies; None is not filled."""

    label: str
    number: str = ""
    place: float | None = None
    marked: bool = False  # framed in orange
    dimmed: bool = False  # filled at a quarter of the strength
    told: str = ""  # where a mouse rests on it


def chips(items: Sequence[Chip], theme: Theme) -> None:
    """Draws the tokens."""
    st.html(f'<div class="chips">{"".join(_chip(item, theme) for item in items)}</div>')


def _chip(item: Chip, theme: Theme) -> str:
    style = ""
    if item.place is not None:
        fill, strong = between(theme, item.place), item.place >= theme.ink_flips_at
        if item.dimmed:
            fill, strong = f"color-mix(in srgb, {fill} 25%, transparent)", False
        style = f' style="background:{fill}{f";color:{theme.ink_on_strong}" if strong else ""}"'
    marked = ' class="marked"' if item.marked else ""
    label = escaped(shorten(item.label))
    return f'<span title="{escaped(item.told)}"{marked}{style}>{label}<i>{item.number}</i></span>'
