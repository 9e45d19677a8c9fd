"""The mean of several measurements and its 95% interval."""

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from mha_viz.errors import ShapeError
from mha_viz.heads.patterns import Numbers

INSIDE = 0.95
RESAMPLES = 4000  # of the bootstrap, with a fixed seed


def interval(values: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """The mean of `[n, ...]` over n, and the lower and upper end of its 95% interval.

    Student's t with n - 1 degrees of freedom, for independent measurements. NaN values do not
    count, which lowers n. If n is 1, the ends are NaN; if it is 0, so is the mean. The ends
    may lie outside the range of a bounded measure: for these, see `bounded_interval`. Raises
    ShapeError for an empty array.
    """
    if not len(values):
        raise ShapeError("There are no measurements. A mean needs at least one.")
    valid = np.isfinite(values)
    n = valid.sum(axis=0)
    mean = np.where(valid, values, 0).sum(axis=0) / np.where(n, n, np.nan)
    squares = np.where(valid, values - mean, 0) ** 2
    variance = squares.sum(axis=0) / np.where(n > 1, n - 1, np.nan)
    t = np.array([np.nan, np.nan, *(t_quantile(k) for k in range(1, len(values)))])[n]
    half = t * np.sqrt(variance / np.where(n, n, np.nan))
    return mean, mean - half, mean + half


def bounded_interval(values: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Like `interval`, but for a bounded measure: the ends are within the measurements' range.

    The expanded percentile bootstrap: percentiles of the means of resampled measurements, moved
    outwards so that, with few measurements, the interval is about as wide as Student's t
    (Hesterberg 2015, "What teachers should know about the bootstrap", section 5.3).
    """
    mean, low, high = interval(values)
    n = np.isfinite(values).sum(axis=0)
    counts = np.random.default_rng(0).multinomial(
        len(values), np.full(len(values), 1 / len(values)), size=RESAMPLES
    )
    for size in np.unique(n[n > 1]):
        of_size = n == size
        columns = values[:, of_size]
        means = _resampled_means(columns, counts)
        tail = NormalDist().cdf(-math.sqrt(size / (size - 1)) * t_quantile(int(size) - 1))
        low[of_size], high[of_size] = np.nanquantile(means, [tail, 1 - tail], axis=0)
    return mean, low, high


def crossed_interval(values: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """The mean of `[A, B, ...]` over A and B, and a 95% interval that allows for dependent cells.

    For example, the cells of a row share a template, and those of a column share a pair of names.
    The interval is the wider of those over the A row means and over the B column means. Raises
    ShapeError for an empty array.
    """
    by_row, by_column = interval(values.mean(axis=1)), interval(values.mean(axis=0))
    wider = by_row[2] - by_row[1] >= by_column[2] - by_column[1]
    low, high = (np.where(wider, by_row[end], by_column[end]) for end in (1, 2))
    return by_row[0], low, high


def _resampled_means(values: Numbers, counts: NDArray[np.int64]) -> Numbers:
    """`[RESAMPLES, k]`: the means of `values` `[n, k]` where row i counts `counts[:, i]` times."""
    valid = np.isfinite(values)
    totals, sizes = counts @ np.where(valid, values, 0.0), counts @ valid
    means: Numbers = totals / np.where(sizes, sizes, np.nan)
    return means


def t_quantile(degrees: int, inside: float = INSIDE) -> float:
    """The t for which the share `inside` of Student's distribution lies between -t and t.

    Found by bisection on `_share`, a closed form. Raises ShapeError for degrees below 1, or a
    share outside (0, 1).
    """
    if degrees < 1 or not 0 < inside < 1:
        raise ShapeError(
            f"degrees = {degrees}, inside = {inside}; expected at least 1, and a share in (0, 1)."
        )
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _share(middle, degrees) < inside else (low, middle)
    return math.sqrt(degrees) * math.tan(low)


def _share(angle: float, degrees: int) -> float:
    """The share of the distribution between -t and t = sqrt(degrees) tan(angle).

    Source: Abramowitz and Stegun 1964, 26.7.3 and 26.7.4.
    """
    cos, odd = math.cos(angle), degrees % 2
    term = cos if odd else 1.0
    total = 0.0
    for k in range(2 + odd, degrees + 1, 2):
        total += term
        term *= cos * cos * (k - 1) / k
    share = math.sin(angle) * total
    return 2 / math.pi * (angle + share) if odd else share
