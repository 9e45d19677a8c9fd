"""Intervals over texts, and ranks."""

import numpy as np
import pytest
from support.models import some_ids
from support.pruning import IDS, OTHER_IDS

from mha_viz import pruning
from mha_viz.errors import ShapeError
from mha_viz.model import Model
from mha_viz.pruning.estimates import ranks, t_quantile


def test_an_estimate_grows_text_by_text(model: Model):
    texts = [IDS, OTHER_IDS, some_ids(30, 300, 9)[0].tolist()]
    each = [pruning.ablate_each_head(model, text) for text in texts]
    found = list(pruning.over_texts(lambda text: pruning.ablate_each_head(model, text), texts))
    assert [one.n for one in found] == [1, 2, 3]
    assert np.isnan(found[0].half_width).all()
    np.testing.assert_allclose(found[2].mean, np.mean(each, axis=0), atol=1e-12)
    error = np.std(each, axis=0, ddof=1) / 3**0.5
    np.testing.assert_allclose(found[2].high - found[2].mean, 4.302653 * error, rtol=1e-5)
    np.testing.assert_allclose(found[2].mean - found[2].low, 4.302653 * error, rtol=1e-5)


@pytest.mark.parametrize(
    ("degrees", "expected"),
    [(1, 12.7062), (2, 4.30265), (4, 2.77645), (9, 2.26216), (23, 2.06866), (10**5, 1.95999)],
)
def test_the_quantiles_are_those_of_the_tables(degrees: int, expected: float):
    assert t_quantile(degrees) == pytest.approx(expected, rel=1e-5)


def test_an_interval_has_its_nominal_coverage():
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(2000):
        one = pruning.estimate(list(rng.normal(2.0, 1.0, (5, 1))))
        hits += bool(one.low[0] <= 2.0 <= one.high[0])
    assert hits / 2000 == pytest.approx(0.95, abs=0.02)  # four standard errors


def test_chunks_of_one_text_count_as_one_measurement():
    rng = np.random.default_rng(4)
    chunks, sizes, texts = rng.normal(0, 1, (5, 2, 3)), [40, 40, 10, 40, 25], [0, 0, 0, 1, 2]
    one = pruning.estimate(list(chunks), weights=sizes, texts=texts)
    assert one.n == 3
    np.testing.assert_allclose(one.mean, np.average(chunks, axis=0, weights=sizes))
    # A ratio estimator: sums over texts, deviations of these from mean times size.
    sums = [(chunks[:3] * np.array(sizes[:3])[:, None, None]).sum(0), 40 * chunks[3],
            25 * chunks[4]]  # fmt: skip
    deviations = [s - one.mean * n for s, n in zip(sums, (90, 40, 25), strict=True)]
    error = np.sqrt(3 / 2 * np.sum(np.square(deviations), axis=0)) / 155
    np.testing.assert_allclose(one.half_width, 4.302653 * error, rtol=1e-5)
    assert np.isnan(pruning.estimate(list(chunks), texts=[0] * 5).half_width).all()


def test_ranks_share_what_is_equal():
    values = np.array([3.0, 1.0, 3.0, 2.0, 3.0, 1.0])
    expected = [sum(v < x for v in values) + (sum(v == x for v in values) - 1) / 2 for x in values]
    assert ranks(values).tolist() == expected


def test_rank_correlation():
    rng = np.random.default_rng(1)
    a, b = rng.random((4, 6)), rng.random((4, 6))
    d = ranks(a.ravel()) - ranks(b.ravel())
    expected = 1 - 6 * (d**2).sum() / (24 * (24**2 - 1))  # Spearman's own form, without ties
    assert pruning.rank_correlation(a, b) == pytest.approx(expected, abs=1e-12)
    assert pruning.rank_correlation(a, np.exp(a)) == pytest.approx(1.0)
    assert pruning.rank_correlation(a, -a) == pytest.approx(-1.0)
    tied = np.round(a, 1)
    expected = np.corrcoef(ranks(tied.ravel()), ranks(b.ravel()))[0, 1]
    assert pruning.rank_correlation(tied, b) == pytest.approx(expected, abs=1e-12)


def test_what_cannot_be_ranked():
    a = np.array([[1.0, 2.0, np.nan, 4.0]])
    assert pruning.rank_correlation(a, np.array([[3.0, 1.0, 9.0, 0.0]])) == pytest.approx(-1.0)
    assert np.isnan(pruning.rank_correlation(a, np.ones((1, 4))))
    assert np.isnan(pruning.rank_correlation(a, np.full((1, 4), np.nan)))
    with pytest.raises(ShapeError, match=r"\[1, 4\] and \[4\]"):
        pruning.rank_correlation(a, a[0])
    with pytest.raises(ShapeError, match="degrees = 0"):
        t_quantile(0)
