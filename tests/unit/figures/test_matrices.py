"""Cells of a large matrix show its largest numbers, and name them, their rows and their columns."""

import numpy as np
import pytest

from mha_viz.figures.matrices import Cells, between, cells_of, head_cells
from mha_viz.figures.shapes import head_colours
from mha_viz.figures.theme import LIGHT


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (8, 200), (70, 33), (192, 32)])
def test_each_cell_names_a_number_of_the_matrix_and_where_it_lies(shape: tuple[int, int]) -> None:
    values = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    cells = cells_of(values, 32, 16, first_column=100)
    assert all(found <= most for found, most in zip(cells.values.shape, (32, 16), strict=True))
    rows, columns = cells.places[..., 0].astype(int), cells.places[..., 1].astype(int) - 100
    np.testing.assert_array_equal(cells.values, values[rows, columns])
    # No number is larger than the one that stands for its block.
    height, width = (-(-n // most) for n, most in zip(shape, (32, 16), strict=True))
    shown = np.abs(cells.values).repeat(height, 0).repeat(width, 1)[: shape[0], : shape[1]]
    assert (np.abs(values) <= shown).all()


def test_blank_numbers_stay_blank() -> None:
    values = np.full((4, 4), np.nan, dtype=np.float32)
    values[0, 0] = -2
    cells = cells_of(values, 2, 2)
    assert cells.values[0, 0] == -2
    assert np.isnan(cells.values.ravel()[1:]).all()


def test_columns_have_the_colours_of_their_heads_and_a_blank_cell_between() -> None:
    blocks = [Cells(np.full((1, 2), v, np.float32), np.zeros((1, 2, 2))) for v in (-1, 0.25)]
    edges = [between(0, 2, 2), between(3, 5, 2)]
    trace = head_cells(blocks, [2, 0], edges, between(0, 1, 1), LIGHT, top=1.0, name="W")
    assert trace["x"].tolist() == [0, 1, 2, 3, 4, 5]
    assert np.isnan(trace["z"][0, 2])
    np.testing.assert_allclose(trace["z"][0, [0, 4]], [2.998, 0.499], atol=1e-6)
    assert trace["customdata"][0, [0, 4], 0].tolist() == [-1, 0.25]
    assert [colour for _, colour in trace["colorscale"]][1::2] == head_colours(LIGHT, 3)
