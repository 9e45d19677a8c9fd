"""Pooled cells keep the value of the largest magnitude."""

import numpy as np
import pytest
from support.markup import lower, values

from mha_viz.figures.pooling import pool_by_magnitude
from mha_viz.trace import max_pool


@pytest.mark.parametrize("block", [1, 2, 3, 7, 30])
def test_a_pooled_cell_is_the_number_of_the_largest_size(block: int) -> None:
    matrix = lower(values(20))
    pooled = pool_by_magnitude(matrix, block)
    for (i, j), value in np.ndenumerate(pooled):
        part = matrix[i * block : (i + 1) * block, j * block : (j + 1) * block].ravel()
        part = part[~np.isnan(part)]
        if len(part):
            assert value == part[np.abs(part).argmax()]
        else:
            assert np.isnan(value)


def test_weights_are_pooled_as_everywhere_else() -> None:
    matrix = np.abs(values(30))
    np.testing.assert_array_equal(pool_by_magnitude(matrix, 4), max_pool(matrix, 4))
