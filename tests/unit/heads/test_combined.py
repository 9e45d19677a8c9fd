"""Combined patterns of many heads, similar heads, and published roles."""

import itertools
import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

import numpy as np
import pandas as pd
import pytest

from mha_viz.errors import HeadNotFound, ShapeError
from mha_viz.gpt2 import GPT2Config
from mha_viz.heads.roles import IOI, LOGIT_DIFFERENCE, ROLES, check, roles_for
from mha_viz.heads.rollout import AGGREGATES, max_pattern, mean_pattern, rollout
from mha_viz.heads.similarity import distances, pattern_distance, similar_heads
from mha_viz.model import Description, Model
from mha_viz.tokens import Token
from mha_viz.trace import Trace

TEXT = "Once upon a time there was a king, and the king had a daughter."


def sharp_trace(heads: Sequence[Sequence[Sequence[int]]]) -> Trace:
    """A trace whose query i of head h of layer l looks at key heads[l][h][i] alone."""
    L, H, T = np.shape(heads)
    k = np.broadcast_to(np.eye(T, dtype=np.float32), (L, H, T, T)).copy()
    q = 200 * np.eye(T, dtype=np.float32)[np.array(heads)]
    tokens = tuple(Token(n, b"x", "x", "text") for n in range(T))
    return Trace("a test", "", tokens, q, k, k.copy(), np.zeros(3, np.float32), (1.0,) * L)


def random_trace(L: int, H: int, T: int, d_h: int = 8) -> Trace:
    q, k, v = np.random.default_rng(0).normal(size=(3, L, H, T, d_h)).astype(np.float32)
    tokens = tuple(Token(n, b"x", "x", "text") for n in range(T))
    return Trace("a test", "", tokens, q, k, v, np.zeros(5, np.float32), (1.0,) * L)


def all_patterns(trace: Trace) -> np.ndarray:
    return np.stack([trace.patterns(layer) for layer in range(trace.n_layers)]).astype(np.float64)


def without(trace: Trace, *heads: tuple[int, int]) -> Trace:
    """The trace of a model that lacks these heads."""
    parts = {name: getattr(trace, name).copy() for name in "qkv"}
    for part, (layer, head) in itertools.product(parts.values(), heads):
        part[layer, head] = np.nan
    return replace(trace, **parts)


# --- mean, maximum, rollout -----------------------------------------------------------------------


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
    """Also where no head prefers it: all keys equal, so the first is only ever led to."""
    trace = random_trace(12, 1, 64)
    flat = replace(trace, q=np.zeros_like(trace.q))
    shares = [rollout(flat, n)[-1, 0] for n in range(13)]
    assert all(np.diff(shares) > 0)
    assert shares[1] < 0.01
    assert shares[12] > 0.3
    assert "tends to drift to position 0" in AGGREGATES["rollout"].limits


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


def test_layers_are_reported_as_they_are_done_and_others_refused() -> None:
    trace = random_trace(3, 2, 4)
    for merge in (rollout, mean_pattern, max_pattern):
        reported: list[int] = []
        merge(trace, on_layer=reported.append)
        assert reported == [1, 2, 3]
    with pytest.raises(HeadNotFound, match="Layer 3 is not in a test: layers count from 0 to 2"):
        mean_pattern(trace, 3)
    with pytest.raises(ShapeError, match="n_layers = 4"):
        rollout(trace, 4)


# --- heads like this one --------------------------------------------------------------------------


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


def test_heads_are_found_by_how_much_they_overlap() -> None:
    """Of four heads, one looks where this one does, one on half of the queries, one never."""
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


def test_the_induction_heads_of_the_bundled_model_are_similar(bundled: Model) -> None:
    ids = [*range(300, 340)] * 2
    found = distances(bundled.trace_ids(ids), 3, 4)
    assert {at[:2] for at in similar_heads(found, 3, 4, n=2)} == {(3, 0), (3, 3)}


# --- published roles ------------------------------------------------------------------------------

GPT2_SMALL = Description("gpt2", "hub", "float32", 124_439_808, "")


def frame_with(**values: float) -> pd.DataFrame:
    layer, head = (axis.ravel() for axis in np.indices((12, 12)))
    return pd.DataFrame({"layer": layer, "head": head, **values})


def test_the_circuit_has_26_heads_in_7_classes() -> None:
    assert len(ROLES) == 26
    assert len({role.name for role in ROLES.values()}) == 7
    assert all((role.layer, role.head) == at for at, role in ROLES.items())
    assert {at for at, role in ROLES.items() if role.name == "induction"} == {
        (5, 5), (5, 8), (5, 9), (6, 9)
    }  # fmt: skip
    assert all(role.source == IOI for role in ROLES.values())


def test_only_gpt2_small_has_roles(bundled: Model) -> None:
    small = GPT2Config()
    assert roles_for(GPT2_SMALL, small) == ROLES
    assert roles_for(replace(GPT2_SMALL, name="openai-community/gpt2"), small) == ROLES
    for name in ("distilgpt2", "gpt2-medium", "someone/gpt2", "./gpt2"):
        assert roles_for(replace(GPT2_SMALL, name=name), small) == {}
    assert roles_for(replace(GPT2_SMALL, source="folder"), small) == {}, "it may be fine-tuned"
    for change in ({"n_layers": 6}, {"d_model": 1024}, {"n_kv_heads": 4}):
        assert roles_for(GPT2_SMALL, replace(small, **change)) == {}
    pruned = replace(small, pruned_heads=((3,), *((),) * 11))
    assert roles_for(GPT2_SMALL, pruned) == {}
    assert roles_for(bundled.description, bundled.config) == {}


def test_a_role_is_confirmed_by_the_whole_interval() -> None:
    role = ROLES[5, 5]
    sure = check(role, frame_with(induction=0.93, induction_low=0.9, induction_high=0.96))
    assert (sure.confirmed, sure.value, sure.low, sure.high) == (True, 0.93, 0.9, 0.96)
    unsure = check(role, frame_with(induction=0.4, induction_low=0.1, induction_high=0.7))
    assert unsure.confirmed is False
    assert check(role, frame_with(induction=0.4)).confirmed is True, "one measurement"
    alone = frame_with(induction=0.2, induction_low=np.nan, induction_high=np.nan)
    assert check(role, alone).confirmed is False


def test_a_negative_role_wants_a_negative_number() -> None:
    role = ROLES[10, 7]
    for mean, expected in [(-0.5, True), (0.5, False), (-0.05, False)]:
        frame = frame_with(**{
            LOGIT_DIFFERENCE: mean,
            f"{LOGIT_DIFFERENCE}_low": mean - 0.02,
            f"{LOGIT_DIFFERENCE}_high": mean + 0.02,
        })  # fmt: skip
        assert check(role, frame).confirmed is expected
    wide = {f"{LOGIT_DIFFERENCE}_low": -1.0, f"{LOGIT_DIFFERENCE}_high": 0.0}
    assert check(role, frame_with(**{LOGIT_DIFFERENCE: -0.5}, **wide)).confirmed is False


def test_what_was_not_measured_is_neither_confirmed_nor_denied(bundled: Model) -> None:
    assert check(ROLES[7, 3], frame_with(induction=0.9)).confirmed is None
    assert check(ROLES[9, 9], frame_with(induction=0.9)).confirmed is None
    assert check(ROLES[5, 5], frame_with(induction=np.nan)).confirmed is None
    with pytest.raises(ShapeError, match="0 rows for L5 H5"):
        check(ROLES[5, 5], frame_with(induction=0.9).head(10))
