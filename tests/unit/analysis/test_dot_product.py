"""The terms of an attention weight, checked against torch and against known sums."""

import numpy as np
import pytest
import torch

from mha_viz.analysis import dot_product
from mha_viz.errors import HeadNotFound, ShapeError
from mha_viz.model import Model
from mha_viz.tokens import Token
from mha_viz.trace import Trace

TEXT = "the cat sat on the mat and the dog ran"


def made_trace(T: int, *, seed: int = 0, L: int = 2, H: int = 3, d_h: int = 8, size: float = 1.0):
    """A trace of random q and k, whose layers have scales of their own."""
    random = np.random.default_rng(seed)
    q, k, v = (size * random.standard_normal((3, L, H, T, d_h))).astype(np.float32)
    tokens = tuple(Token(i, b"x", str(i), "text") for i in range(T))
    scales = tuple(0.3 / (i + 1) for i in range(L))
    return Trace("made", "", tokens, q, k, v, np.zeros(5, dtype=np.float32), scales)


@torch.inference_mode()
def module_record(model: Model, trace: Trace, layer: int):
    network = model.network
    x = network.attention_input(torch.tensor([trace.token_ids]), layer)
    return network.blocks[layer].attn.explicit(x)


# --- one query and one key ------------------------------------------------------------------------


def test_the_products_add_up_to_the_score_of_the_module(tiny: Model) -> None:
    trace = tiny.trace(TEXT)
    scores = module_record(tiny, trace, 1).scores[0].numpy()
    for head in range(trace.n_heads):
        for query, key in [(0, 0), (9, 3), (5, 9)]:  # the last key is after the query
            found = dot_product.dot_product(trace, 1, head, query, key)
            assert found.products.sum() * trace.scales[1] == found.score
            assert found.score == pytest.approx(scores[head, query, key], abs=1e-5)
            np.testing.assert_array_equal(found.q, trace.q[1, head, query])
            np.testing.assert_array_equal(found.k, trace.k[1, head, key])


def test_products_are_exact() -> None:
    """A product of two float32 fits into a float64: nothing is rounded, so the sum is exact."""
    trace = made_trace(4)
    found = dot_product.dot_product(trace, 0, 0, 3, 1)
    by_hand = [float(a) * float(b) for a, b in zip(trace.q[0, 0, 3], trace.k[0, 0, 1], strict=True)]
    assert found.products.tolist() == by_hand
    assert found.total == pytest.approx(sum(by_hand), abs=1e-12)


def test_elements_are_ordered_by_index_or_by_magnitude() -> None:
    found = dot_product.DotProduct(q=np.array([1.0, -3.0, 2.0, 0.0]), k=np.ones(4), scale=0.5)
    assert found.order(by_size=False).tolist() == [0, 1, 2, 3]
    assert found.order(by_size=True).tolist() == [1, 2, 0, 3]


def test_every_layer_has_its_own_scale() -> None:
    trace = made_trace(4)
    for layer in range(2):
        found = dot_product.dot_product(trace, layer, 0, 2, 2)
        assert found.scale == trace.scales[layer]
        assert dot_product.softmax_row(trace, layer, 0, 2).scores[2] == pytest.approx(found.score)


# --- the row of a query ---------------------------------------------------------------------------


@pytest.mark.parametrize("query", [0, 1, 6, 9])
def test_the_ladder_ends_in_the_weights_of_the_module(tiny: Model, query: int) -> None:
    trace = tiny.trace(TEXT)
    pattern = module_record(tiny, trace, 0).pattern[0].numpy()
    for head in range(trace.n_heads):
        row = dot_product.softmax_row(trace, 0, head, query)
        np.testing.assert_allclose(row.weights, pattern[head, query], atol=1e-6)
        assert row.weights.sum() == pytest.approx(1, abs=1e-12)
        assert row.exps[: query + 1].max() == 1
        np.testing.assert_allclose(row.weights, row.exps / row.exps.sum())


def test_a_masked_key_keeps_its_score_and_has_no_weight() -> None:
    trace = made_trace(6)
    row = dot_product.softmax_row(trace, 1, 2, 3)
    np.testing.assert_allclose(
        row.scores, trace.k[1, 2].astype(float) @ trace.q[1, 2, 3] * trace.scales[1], atol=1e-6
    )
    assert (row.exps[4:] == 0).all()
    assert (row.weights[4:] == 0).all()
    assert row.largest == row.scores[:4].max()


def test_large_scores_do_not_overflow() -> None:
    row = dot_product.softmax_row(made_trace(8, size=300.0), 0, 0, 7)
    assert np.abs(row.scores).max() > 1e4
    assert row.weights.sum() == pytest.approx(1, abs=1e-12)


def test_the_strongest_keys_come_first_and_the_selected_one_is_always_included() -> None:
    row = dot_product.Row(query=3, scores=np.array([0.5, 2.0, 1.0, 2.0, 9.0]))
    assert row.strongest(2) == [1, 3]
    assert row.strongest(2, also=3) == [1, 3]
    assert row.strongest(2, also=4) == [1, 3, 4]
    assert row.strongest(10) == [1, 3, 2, 0]


def test_scores_of_all_pairs_are_those_of_the_module(tiny: Model) -> None:
    trace = tiny.trace(TEXT)
    theirs = module_record(tiny, trace, 1).scores[0].numpy()
    found = dot_product.scores(trace, 1, 2)
    np.testing.assert_allclose(found, theirs[2], atol=1e-5)
    masked = dot_product.scores(trace, 1, 2, masked=True)
    beyond = ~np.tri(len(found), dtype=bool)
    assert np.isnan(masked[beyond]).all()
    np.testing.assert_array_equal(masked[~beyond], found[~beyond])


# --- lines ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("most", "threshold"), [(1, 0.0), (3, 0.0), (8, 0.1), (100, 0.25)])
def test_lines_are_the_largest_weights_of_each_row(most: int, threshold: float) -> None:
    pattern = made_trace(20, size=2.0).pattern(0, 1)
    found = dot_product.lines(pattern, most=most, threshold=threshold)
    expected = set()
    for i, row in enumerate(pattern):
        best = sorted(range(i + 1), key=lambda j: -row[j])[:most]
        expected |= {(i, j) for j in best if row[j] >= threshold}
    assert set(zip(found.queries.tolist(), found.keys.tolist(), strict=True)) == expected
    assert len(found) == len(expected)
    np.testing.assert_array_equal(found.weights, pattern[found.queries, found.keys])
    assert (np.diff(found.weights) <= 0).all()


def test_no_line_leads_to_a_masked_key() -> None:
    found = dot_product.lines(np.eye(5, dtype=np.float32), most=5, threshold=0.0)
    assert (found.keys <= found.queries).all()
    assert len(found) == 15


def test_of_several_heads_the_strongest_lines_stay_each_with_its_head() -> None:
    heads = [dot_product.lines(made_trace(12, seed=s).pattern(0, 0)) for s in range(3)]
    kept = dot_product.strongest(heads, 25)
    weights = np.sort(np.concatenate([one.weights for one in heads]))[::-1]
    assert sum(map(len, kept)) == 25
    np.testing.assert_array_equal(
        np.sort(np.concatenate([one.weights for one in kept]))[::-1], weights[:25]
    )
    for one, whole in zip(kept, heads, strict=True):
        np.testing.assert_array_equal(one.keys, whole.keys[: len(one)])
    assert dot_product.strongest(heads, 10_000)[1] is heads[1]


# --- the first token ------------------------------------------------------------------------------


def test_without_the_first_key_nothing_else_changes() -> None:
    pattern = made_trace(9).pattern(0, 0)
    hidden = dot_product.without_first(pattern)
    assert np.isnan(hidden[:, 0]).all()
    np.testing.assert_array_equal(hidden[:, 1:], pattern[:, 1:])


def test_renormalised_rows_add_up_to_one_in_the_same_proportions() -> None:
    pattern = made_trace(9).pattern(1, 1)
    found = dot_product.without_first(pattern, renormalised=True)
    assert np.isnan(found[0]).all()  # it has no other key
    np.testing.assert_allclose(np.nansum(found[1:], axis=1), 1, atol=1e-6)
    by_hand = pattern[1:, 1:] / (1 - pattern[1:, :1])
    np.testing.assert_allclose(found[1:, 1:], by_hand, atol=1e-5)


def test_a_row_that_looks_at_nothing_else_has_nothing_left() -> None:
    pattern = np.array([[1, 0, 0], [1, 0, 0], [0.5, 0.25, 0.25]], dtype=np.float32)
    found = dot_product.without_first(pattern, renormalised=True)
    assert np.isnan(found[:2]).all()
    np.testing.assert_allclose(found[2, 1:], [0.5, 0.5])


def test_the_share_of_the_first_token_leaves_out_the_row_without_a_choice() -> None:
    pattern = np.array([[1, 0, 0], [0.2, 0.8, 0], [0.6, 0.2, 0.2]], dtype=np.float32)
    assert dot_product.share_of_first(pattern) == pytest.approx(0.4)
    assert dot_product.share_of_first(pattern * [0.5, 1, 2]) == pytest.approx(0.4 / (0.4 + 1 + 0.4))
    assert np.isnan(dot_product.share_of_first(np.ones((1, 1), dtype=np.float32)))
    some = dot_product.share_of_first(pattern, np.array([0, 2]))
    assert some == pytest.approx(float(pattern[2, 0] / pattern[2].sum()))


# --- what cannot be asked for ---------------------------------------------------------------------


def test_a_missing_position_is_named() -> None:
    trace = made_trace(4)
    with pytest.raises(HeadNotFound, match="L2 H0 is not in made"):
        dot_product.softmax_row(trace, 2, 0, 0)
    with pytest.raises(HeadNotFound):
        dot_product.scores(trace, 0, 3)
    with pytest.raises(ShapeError, match="no position 4: the text has positions 0 to 3"):
        dot_product.dot_product(trace, 0, 0, 0, 4)
    with pytest.raises(ShapeError, match="most = 0"):
        dot_product.lines(np.ones((1, 1), dtype=np.float32), most=0)


@pytest.mark.parametrize("first_key", [0, 1, 3, 9])
def test_lines_lead_only_to_keys_from_the_first_one_on(first_key: int) -> None:
    rng = np.random.default_rng(0)
    pattern = np.tril(rng.random((9, 9)).astype(np.float32))
    found = dot_product.lines(pattern, most=2, first_key=first_key)
    wanted = {
        (query, int(key))
        for query in range(9)
        for key in sorted(range(first_key, query + 1), key=lambda key: -pattern[query, key])[:2]
    }
    assert set(zip(found.queries.tolist(), found.keys.tolist(), strict=True)) == wanted
