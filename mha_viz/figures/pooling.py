"""Blocks of a matrix as one cell each, for matrices larger than the screen."""

import numpy as np

from mha_viz.trace import Array


def pool_by_magnitude(values: Array, rows: int, columns: int | None = None) -> Array:
    """The value of largest magnitude in each block of `rows` x `columns`, with its sign.

    `columns` defaults to `rows`. NaN is ignored; a block of only NaN is NaN.
    """
    columns = columns or rows
    if rows == columns == 1:
        return values
    starts = [np.arange(0, n, step) for n, step in zip(values.shape, (rows, columns), strict=True)]
    blank = np.isnan(values)

    def largest(x: Array) -> Array:
        pooled: Array = np.maximum.reduceat(np.maximum.reduceat(x, starts[0], 0), starts[1], 1)
        return pooled

    highest = largest(np.where(blank, -np.inf, values))
    lowest = largest(np.where(blank, -np.inf, -values))
    pooled: Array = np.where(highest >= lowest, highest, -lowest).astype(np.float32)
    pooled[np.isneginf(highest)] = np.nan
    return pooled
