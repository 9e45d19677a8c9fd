"""Two patterns side by side: their numbers, the framed row and its largest weight."""

import numpy as np

from mha_viz.figures.pattern_pair import MAX_LABELS, pattern_pair
from mha_viz.figures.theme import LIGHT
from mha_viz.figures.window import MAX_CELLS

RIGHT = np.array([[1, np.nan], [0.25, 0.75]], dtype=np.float32)
WRONG = np.array([[0.5, 0.5], [0.9, 0.1]], dtype=np.float32)


def test_both_hold_their_weights_and_share_a_colour_scale() -> None:
    figure = pattern_pair(RIGHT, WRONG, ["a", "b"], LIGHT, most=("a", "b"))
    for cells, pattern in zip(figure.data, (RIGHT, WRONG), strict=True):
        np.testing.assert_array_equal(cells.customdata, pattern)
        np.testing.assert_allclose(cells.z, np.sqrt(pattern))
        assert (cells.zmin, cells.zmax) == (0, 1)


def test_the_last_row_is_framed_and_its_largest_weight_outlined() -> None:
    row, cell, wrong_row, wrong_cell = pattern_pair(
        RIGHT, WRONG, ["a", "b"], LIGHT, most=("most on b", "most on a")
    ).layout.shapes
    assert (row.y0, row.y1) == (wrong_row.y0, wrong_row.y1) == (0.5, 1.5)
    assert (cell.x0, cell.x1) == (0.5, 1.5)
    assert (wrong_cell.x0, wrong_cell.x1) == (-0.5, 0.5)
    assert (row.xref, wrong_row.xref) == ("x", "x2")


def test_a_long_text_is_pooled_and_few_of_its_tokens_are_named() -> None:
    T = MAX_CELLS + 20
    pattern = np.tri(T, dtype=np.float32) / np.arange(1, T + 1, dtype=np.float32)[:, None]
    figure = pattern_pair(pattern, pattern, ["a"] * T, LIGHT, most=("", ""))
    assert max(np.shape(figure.data[0].z)) <= MAX_CELLS
    assert len(figure.layout.yaxis.ticktext) <= MAX_LABELS
