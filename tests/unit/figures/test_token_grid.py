"""A grid of tokens escapes them and keeps them readable."""

import numpy as np
import pytest

from mha_viz.figures.theme import DARK, LIGHT
from mha_viz.figures.token_grid import Grid, token_grid


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_tokens_in_the_grid_are_plain_text_in_a_legible_colour(theme) -> None:  # type: ignore[no-untyped-def]
    grid = Grid(
        columns=["<b>", "$a$"],
        rows=["1"],
        tokens=[["<i>&", "x"]],
        probabilities=np.array([[0.001, 0.999]], dtype=np.float32),
        hovers=[[["<i>", "$"], ["y"]]],
        outlined=np.array([[False, True]]),
        notes=[("follows", ["<u>", "?"])],
        selected=1,
    )
    figure = token_grid(grid, theme)
    cells, _, written = figure.data
    assert list(written.text) == ["&lt;i&gt;&amp;", "x", "&lt;u&gt;", "?"]
    assert cells.hovertext[0][0] == "&lt;i&gt;<br>&#36;"
    assert figure.layout.xaxis.ticktext[0] == "&lt;b&gt;<br>0"
    assert theme.query in figure.layout.xaxis.ticktext[1]
    assert list(written.textfont.color[:2]) == [theme.ink, theme.ink_on_strong]


def test_columns_that_are_no_positions_have_names_alone() -> None:
    grid = Grid(
        columns=["before", "after"],
        rows=["embedding"],
        tokens=[["a", "b"]],
        probabilities=np.array([[0.5, 0.5]], dtype=np.float32),
        hovers=[[["a"], ["b"]]],
        outlined=np.zeros((1, 2), dtype=bool),
        numbered=False,
    )
    assert list(token_grid(grid, LIGHT).layout.xaxis.ticktext) == ["before", "after"]
