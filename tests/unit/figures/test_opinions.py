"""The rows of all heads and their mean: the numbers, the rings and the words beside them."""

import numpy as np
import pytest

from mha_viz.figures.opinions import MOST_ROWS, opinions_figure, opinions_height
from mha_viz.figures.theme import LIGHT

ROWS = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]], dtype=np.float32)
TOKENS = ["The", "·king", "·gave"]


def test_it_holds_every_weight_and_the_mean() -> None:
    heads, mean = opinions_figure(ROWS, TOKENS, LIGHT, heads=[0, 4], selected=1).data
    np.testing.assert_allclose(heads.z, np.sqrt(ROWS))
    np.testing.assert_allclose(mean.z, np.sqrt(ROWS.mean(axis=0, keepdims=True)), rtol=1e-6)
    assert heads.customdata[1][2].tolist() == ["H4", "·gave", pytest.approx(0.8)]


def test_the_largest_weight_of_each_row_is_ringed_and_named() -> None:
    figure = opinions_figure(ROWS, TOKENS, LIGHT, heads=[0, 4], selected=1)
    assert [(ring.x0 + 0.5) for ring in figure.layout.shapes] == [0, 2, 2]
    assert [note.text for note in figure.layout.annotations] == [
        "The 0.70",
        "·gave 0.80",
        "·gave 0.45",
    ]
    assert LIGHT.query in figure.layout.yaxis.ticktext[1]
    assert "H4" in figure.layout.yaxis.ticktext[1]


def test_many_heads_share_the_height() -> None:
    assert opinions_height(64) == opinions_height(MOST_ROWS) > opinions_height(4)
    rows = np.full((64, 3), 1 / 3, dtype=np.float32)
    figure = opinions_figure(rows, TOKENS, LIGHT, heads=range(64), selected=63)
    assert len(figure.layout.annotations) == 1
    assert "H63" in figure.layout.yaxis.ticktext[-2]
