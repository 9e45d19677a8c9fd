"""A pattern and tokens that a spreadsheet, HTML or Plotly could misread."""

import csv
import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from mha_viz.export import Drawn, Picture, Recipe, pattern_data
from mha_viz.figures.heatmap import head_heatmap
from mha_viz.figures.theme import LIGHT

TOKENS = ["a", "=SUM(A1)", "<b>", "a", "$x$"]


def pattern() -> np.ndarray:
    weights = np.tril(np.random.default_rng(0).random((5, 5))).astype(np.float32)
    return weights / weights.sum(axis=1, keepdims=True)


def picture(
    title: str = "One head", caption: str = "", tokens: Sequence[str] = TOKENS, **size: Any
) -> Picture:
    """The pattern as a heatmap."""

    def draw() -> Drawn:
        figure = head_heatmap(pattern(), tokens, LIGHT)
        return figure, pattern_data(pattern(), tokens, layer=3)

    recipe = Recipe(draw, {})
    return Picture(title, recipe.make()[0], recipe, caption, **size)


def rows_of(text: str) -> list[dict[str, str]]:
    """The rows of a CSV file, without the comments before them."""
    lines = [line for line in text.splitlines(keepends=True) if not line.startswith("# ")]
    return list(csv.DictReader(io.StringIO("".join(lines))))
