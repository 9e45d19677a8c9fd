"""Intervals of means: how often they hold the mean; a bounded measure stays in its range."""

import itertools

import numpy as np
import pytest

from mha_viz.errors import ShapeError
from mha_viz.heads.interval import bounded_interval, crossed_interval, interval


def test_the_interval_of_a_share_stays_between_0_and_1() -> None:
    """Student's t gives [0.573, 1.0996] or the like."""
    shares = np.array([1.0, 0.98, 1.0, 0.7, 0.5])[:, None]
    assert interval(shares)[2] > 1
    mean, low, high = bounded_interval(shares)
    assert shares.min() <= low < mean < high <= 1


def test_the_bootstrap_is_that_of_all_resamples() -> None:
    """Its ends are the percentiles of the means of all 5^5 ways to draw five of five values."""
    values = np.array([0.1, 0.35, 0.4, 0.8, 0.85])
    means = np.mean(list(itertools.product(values, repeat=5)), axis=1)
    _, low, high = bounded_interval(values[:, None])
    # Phi(-sqrt(5 / 4) * 2.776445) = 0.000956
    assert low == pytest.approx(np.quantile(means, 0.000956), abs=0.04)
    assert high == pytest.approx(np.quantile(means, 1 - 0.000956), abs=0.04)


def test_bounded_intervals_have_their_nominal_coverage() -> None:
    rng = np.random.default_rng(0)
    shares = rng.beta(4, 2, (6, 2000))
    _, low, high = bounded_interval(shares)
    inside = ((low <= 4 / 6) & (high >= 4 / 6)).mean()
    assert inside == pytest.approx(0.95, abs=0.03)


def test_missing_values_lower_the_number_of_measurements() -> None:
    values = np.array([[0.2, 0.2], [0.4, 0.4], [0.9, 0.9], [np.nan, 0.3]])
    found = np.stack(bounded_interval(values))
    alone = np.stack(bounded_interval(values[:3, :1]))
    np.testing.assert_allclose(found[:, 0], alone[:, 0], atol=0.06)
    one = bounded_interval(np.array([[0.3]]))
    assert one[0] == 0.3
    assert np.isnan(one[1:]).all()


def test_cells_that_share_a_row_are_not_independent() -> None:
    """16 values whose rows differ by much: the interval is that of 4 row means, not of 16."""
    rng = np.random.default_rng(3)
    values = rng.normal(0, 1, (4, 1)) + rng.normal(0, 0.01, (4, 4))
    mean, low, high = crossed_interval(values[..., None])
    by_row = interval(values.mean(1)[:, None])
    assert (mean, low, high) == by_row
    flat = interval(values.reshape(16, 1))
    assert high - low > 1.5 * (flat[2] - flat[1])
    turned = crossed_interval(values.T[..., None])
    np.testing.assert_allclose(turned, (mean, low, high))


def test_no_measurement_has_no_mean() -> None:
    with pytest.raises(ShapeError, match="no measurements"):
        bounded_interval(np.empty((0, 2)))
