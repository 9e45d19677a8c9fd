"""The mean of several measurements and its 95% interval."""

import math

import numpy as np

from mha_viz.errors import ShapeError
from mha_viz.heads.patterns import Numbers

INSIDE = 0.95


def interval(values: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """The mean of `[n, ...]` over n, and the lower and upper end of its 95% interval.

    Student's t with n - 1 degrees of freedom, for independent measurements. NaN values do not
    count, which lowers n. If n is 1, the ends are NaN; if it is 0, so is the mean. The ends
    may lie outside the range of the measure. Raises ShapeError for an empty array.
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


def t_quantile(degrees: int, inside: float = INSIDE) -> float:
    """The t for which the share `inside` of Student's distribution lies between -t and t.

    By bisection on `_share`, which is exact. Raises ShapeError for degrees below 1, or a share
    outside (0, 1).
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
