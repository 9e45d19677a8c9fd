"""Mean, maximum and rollout combine the patterns of many heads."""

import tracemalloc
from dataclasses import replace
from functools import reduce

import numpy as np
import pytest
from support.traces import sharp_trace, without

from mha_viz.analysis.reference_texts import reference_texts
from mha_viz.app.samples import SAMPLES
from mha_viz.errors import HeadNotFound, ShapeError
from mha_viz.heads.rollout import AGGREGATES, max_pattern, mean_pattern, rollout
from mha_viz.heads.similarity import distances
from mha_viz.model import Model
from mha_viz.tokens import Token
from mha_viz.trace import Trace

TEXT = "Once upon a time there was a king, and the king had a daughter."


def random_trace(L: int, H: int, T: int, d_h: int = 8) -> Trace:
    q, k, v = np.random.default_rng(0).normal(size=(3, L, H, T, d_h)).astype(np.float32)
    tokens = tuple(Token(n, b"x", "x", "text") for n in range(T))
    return Trace("a test", "", tokens, q, k, v, np.zeros(5, np.float32), (1.0,) * L)


def all_patterns(trace: Trace) -> np.ndarray:
    return np.stack([trace.patterns(layer) for layer in range(trace.n_layers)]).astype(np.float64)


def test_mean_and_maximum_are_those_of_all_patterns_at_once(bundled: Model) -> None:
    trace = bundled.trace(TEXT)
    full = all_patterns(trace)
    close = {"rtol": 0, "atol": 1e-6}
    np.testing.assert_allclose(mean_pattern(trace, 2), full[2].mean(0), **close)
    np.testing.assert_allclose(mean_pattern(trace), full.mean((0, 1)), **close)
    np.testing.assert_allclose(mean_pattern(trace).sum(1), 1, **close)
    assert np.array_equal(max_pattern(trace, 3), full[3].max(0))
    assert np.array_equal(max_pattern(trace), full.max((0, 1)))


def test_rollout_is_the_product_of_its_layers(bundled: Model) -> None:
    """In float64 and all at once: R = (A_3 + I)/2 (A_2 + I)/2 (A_1 + I)/2 (A_0 + I)/2."""
    trace = bundled.trace(TEXT)
    steps = [(layer.mean(0) + np.eye(trace.n_tokens)) / 2 for layer in all_patterns(trace)]
    for n in range(5):
        expected = reduce(lambda done, step: step @ done, steps[:n], np.eye(trace.n_tokens))
        np.testing.assert_allclose(rollout(trace, n), expected, rtol=0, atol=1e-6)
    assert np.array_equal(rollout(trace), rollout(trace, 4))


def test_rollout_of_previous_token_heads_is_a_walk() -> None:
    """Two layers that step back or stay with even odds: 1/4, 1/2, 1/4 on the last three."""
    back = [0, 0, 1, 2, 3]
    found = rollout(sharp_trace([[back], [back]]))
    np.testing.assert_allclose(found[4], [0, 0, 0.25, 0.5, 0.25], atol=1e-6)
    np.testing.assert_allclose(rollout(sharp_trace([[back]]), residual=0.9)[4, 3:], [0.1, 0.9])


def test_layers_are_multiplied_in_their_order() -> None:
    """Position 2 reads 1 in the last layer, and 1 read 0 before: so 0 reaches 2, not otherwise."""
    first, second = [0, 0, 2], [0, 1, 1]
    assert rollout(sharp_trace([[first], [second]]))[2, 0] == pytest.approx(0.25)
    assert rollout(sharp_trace([[second], [first]]))[2, 0] == 0


def test_under_a_causal_mask_rollout_drifts_to_the_first_token() -> None:
    """Even if no head prefers it: with equal weights, paths still lead to the first key."""
    trace = random_trace(12, 1, 64)
    flat = replace(trace, q=np.zeros_like(trace.q))
    shares = [rollout(flat, n)[-1, 0] for n in range(13)]
    assert all(np.diff(shares) > 0)
    assert shares[1] < 0.01
    assert shares[12] > 0.3
    assert "mean weight on position 0 tends to grow" in AGGREGATES["rollout"].limits


@pytest.mark.parametrize("text", [*SAMPLES.values(), "\n".join(reference_texts())[:3000]])
def test_the_mean_weight_on_position_0_grows_with_every_layer(bundled: Model, text: str) -> None:
    trace = bundled.trace(text)
    weights = [rollout(trace, n)[1:, 0].mean() for n in range(trace.n_layers + 1)]
    assert (np.diff(weights) > 0).all()
    assert "the mean weight on position 0 tends to grow" in AGGREGATES["rollout"].limits


def test_pruned_heads_do_not_count() -> None:
    whole = random_trace(2, 3, 10)
    some = without(whole, (0, 1), (1, 0), (1, 1), (1, 2))
    expected = all_patterns(whole)[0, [0, 2]].mean(0)
    np.testing.assert_allclose(mean_pattern(some, 0), expected, rtol=0, atol=1e-6)
    np.testing.assert_allclose(mean_pattern(some), expected, rtol=0, atol=1e-6)
    assert np.array_equal(rollout(some), rollout(some, 1)), "a layer without heads changes nothing"
    with pytest.raises(HeadNotFound, match="All heads of layer 1 of this model have been pruned"):
        max_pattern(some, 1)


def test_no_more_than_a_few_patterns_exist_at_once() -> None:
    trace = random_trace(4, 6, 256)
    pattern = 4 * 256 * 256
    for merge in (mean_pattern, max_pattern, rollout, lambda t: distances(t, 0, 0)):
        merge(trace)
        tracemalloc.start()
        merge(trace)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 6 * pattern, "of 24 heads"


def test_layers_are_reported_as_they_are_done_and_others_rejected() -> None:
    trace = random_trace(3, 2, 4)
    for merge in (rollout, mean_pattern, max_pattern):
        reported: list[int] = []
        merge(trace, on_layer=reported.append)
        assert reported == [1, 2, 3]
    with pytest.raises(HeadNotFound, match="Layer 3 is not in a test, which has layers 0 to 2"):
        mean_pattern(trace, 3)
    with pytest.raises(ShapeError, match="n_layers = 4"):
        rollout(trace, 4)
