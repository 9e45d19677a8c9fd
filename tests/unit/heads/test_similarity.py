"""Similar heads are found by how much their patterns overlap."""

import numpy as np
import pytest
from support.traces import sharp_trace, without

from mha_viz.errors import HeadNotFound, ShapeError
from mha_viz.heads.similarity import distances, pattern_distance, similar_heads
from mha_viz.model import Model


def test_a_distance_is_the_share_of_weight_that_moved() -> None:
    a = np.array([[1, 0, 0], [0.5, 0.5, 0], [0.2, 0.3, 0.5]], dtype=np.float32)
    b = np.array([[1, 0, 0], [0.1, 0.9, 0], [0.2, 0.3, 0.5]], dtype=np.float32)
    assert pattern_distance(a, a) == 0
    assert pattern_distance(a, b) == pattern_distance(b, a) == pytest.approx(0.4 / 2)
    one, other = sharp_trace([[[0, 0, 0], [0, 1, 2]]]).patterns(0)
    assert pattern_distance(one, other) == pytest.approx(1)
    assert np.isnan(pattern_distance(a[:1, :1], b[:1, :1]))
    with pytest.raises(ShapeError, match="shapes"):
        pattern_distance(a, b[:2, :2])


def test_similar_heads_are_those_that_overlap_most() -> None:
    """Three other heads: one looks where this one does, one on half of the queries, one never."""
    this, half, never = [0, 0, 1, 2, 3], [0, 0, 1, 3, 4], [0, 1, 2, 3, 4]
    trace = sharp_trace([[this, never], [half, this]])
    found = distances(trace, 0, 0)
    np.testing.assert_allclose(found, [[0, 1], [0.5, 0]], atol=1e-6)
    similar = similar_heads(found, 0, 0)
    assert [at[:2] for at in similar] == [(1, 1), (1, 0), (0, 1)]
    assert len(similar_heads(found, 0, 0, n=1)) == 1
    removed = without(trace, (1, 1))
    assert np.isnan(distances(removed, 0, 0)[1, 1])
    assert [at[:2] for at in similar_heads(distances(removed, 0, 0), 0, 0)] == [(1, 0), (0, 1)]
    with pytest.raises(HeadNotFound, match="has been pruned"):
        distances(removed, 1, 1)


def test_queries_that_are_special_tokens_do_not_count(bundled: Model) -> None:
    trace = bundled.trace("The king gave the ring.<|endoftext|>The queen gave")
    (special,) = (n for n, token in enumerate(trace.details) if token.kind == "special")
    rows = [n for n in range(1, trace.n_tokens) if n != special]
    a, b = trace.pattern(0, 1)[rows], trace.pattern(2, 5)[rows]
    expected = np.abs(a - b).sum(axis=1).mean() / 2
    assert distances(trace, 0, 1)[2, 5] == pytest.approx(expected, abs=1e-6)


def test_the_induction_heads_of_the_bundled_model_are_similar(bundled: Model) -> None:
    ids = [*range(300, 340)] * 2
    found = distances(bundled.trace_ids(ids), 3, 4)
    assert {at[:2] for at in similar_heads(found, 3, 4, n=2)} == {(3, 0), (3, 3)}
