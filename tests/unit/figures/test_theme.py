"""Colours have one source and enough contrast."""

import tomllib
from pathlib import Path

import numpy as np
import pytest

from mha_viz.figures.theme import THEMES, colorscale, config_toml, rgb

ROOT = Path(__file__).resolve().parents[3]


def _luminance(colour: str) -> float:
    channels = [c / 255 for c in rgb(colour)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(a: str, b: str) -> float:
    low, high = sorted((_luminance(a), _luminance(b)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("name", ["light", "dark"])
def test_text_can_be_read_on_the_page(name: str) -> None:
    theme = THEMES[name]
    for colour in (theme.ink, theme.muted, theme.accent, theme.link, theme.query, theme.key):
        assert _contrast(colour, theme.page) >= 4.5
        assert _contrast(colour, theme.surface) >= 4.5
    luminances = [_luminance(c) for _, c in colorscale(theme)]
    steps = np.diff(luminances)
    assert (steps < 0).all() if name == "light" else (steps > 0).all()


def test_streamlit_and_plotly_take_their_colours_from_one_source() -> None:
    written = (ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8")
    assert tomllib.loads(config_toml())["theme"] == tomllib.loads(written)["theme"]
