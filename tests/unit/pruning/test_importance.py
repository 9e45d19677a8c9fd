"""Estimates of importance, against differences, autograd and loops."""

import copy

import numpy as np
import pytest
import torch
from support.models import some_ids, trace_of
from support.pruning import HEADS, IDS, OTHER_IDS, H, L
from torch.nn import functional as F

from mha_viz import pruning
from mha_viz.analysis.logit_attribution import value_norms
from mha_viz.model import Model
from mha_viz.pruning import Pass, gradient_importance, passes


def loss_under(model: Model, ids: list[int], gate: torch.Tensor) -> torch.Tensor:
    logits = model.network(torch.tensor([ids]), head_gate=gate)[0]
    return F.cross_entropy(logits[:-1], torch.tensor(ids[1:]))


def test_the_gradient_is_that_of_small_steps(model: Model):
    """Central differences in float64: their error is of the order of the step squared."""
    exact = Model(copy.deepcopy(model.network).double(), model.tokenizer, model.description)
    found, step = gradient_importance(model, IDS), 1e-4
    for layer, head in HEADS:
        up, down = (torch.ones(L, H, dtype=torch.float64) for _ in range(2))
        up[layer, head] += step
        down[layer, head] -= step
        slope = (loss_under(exact, IDS, up) - loss_under(exact, IDS, down)) / (2 * step)
        assert found[layer, head] == pytest.approx(abs(float(slope)), abs=1e-5)
    assert found.max() > 1e-2


@pytest.mark.parametrize("size", [77, 10**6])
def test_the_gradient_is_that_of_autograd_through_the_network(
    model: Model, monkeypatch: pytest.MonkeyPatch, size: int
):
    monkeypatch.setattr(passes, "VOCABULARY_PART", size)
    gate = torch.rand(L, H, generator=torch.Generator().manual_seed(3)).requires_grad_()
    (expected,) = torch.autograd.grad(loss_under(model, IDS, gate), gate)
    found = gradient_importance(model, IDS, gate=gate)
    np.testing.assert_allclose(found, expected.abs().numpy(), atol=1e-6)


def test_of_several_texts_the_absolute_value_comes_first(model: Model):
    texts = [IDS, OTHER_IDS, some_ids(30, 300, 9)[0].tolist()]
    signed = []
    for ids in texts:
        gate = torch.ones(L, H, requires_grad=True)
        signed.append(torch.autograd.grad(loss_under(model, ids, gate), gate)[0].numpy())
    found = gradient_importance(model, texts)
    weights = [len(ids) - 1 for ids in texts]  # every token counts the same
    expected = np.average(np.abs(signed), axis=0, weights=weights)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert np.abs(found - np.abs(np.mean(signed, axis=0))).max() > 1e-3, "signs differ"


def test_a_normalised_layer_has_length_one(model: Model):
    plain = gradient_importance(model, IDS)
    found = gradient_importance(model, IDS, normalize=True)
    np.testing.assert_allclose((found**2).sum(1), 1.0, atol=1e-9)
    np.testing.assert_allclose(found[0] / found[0, 0], plain[0] / plain[0, 0], rtol=1e-6)


def test_the_gradient_towards_a_replacement_is_that_of_small_steps(model: Model):
    replacement = pruning.make_replacement(model, "position-wise mean", len(IDS), [OTHER_IDS])
    found, step = gradient_importance(model, IDS, replacement=replacement), 1e-2
    for head in HEADS:
        sides = []
        for sign in (1, -1):
            gate = np.ones((L, H))
            gate[head] += sign * step
            sides.append(Pass.of(model, IDS, gate=gate, replacement=replacement).loss)
        assert found[head] == pytest.approx(abs(sides[0] - sides[1]) / (2 * step), abs=2e-4)
    assert np.abs(found - gradient_importance(model, IDS)).max() > 1e-2


def test_the_gradient_works_inside_no_grad_and_inference_mode(model: Model):
    expected = gradient_importance(model, IDS)
    with torch.inference_mode():
        replacement = pruning.make_replacement(model, "mean", 24, [OTHER_IDS])
        assert np.array_equal(gradient_importance(model, IDS), expected)
        gradient_importance(model, IDS, replacement=replacement)
    with torch.no_grad():
        assert np.array_equal(gradient_importance(model, IDS), expected)
    assert not any(p.requires_grad or p.grad is not None for p in model.network.parameters())


def test_ablated_heads_have_no_gradient(model: Model):
    gate = pruning.gate_without(model.config, [(0, 1), (1, 3)])
    found = gradient_importance(model, IDS, gate=gate)
    assert np.argwhere(np.isnan(found)).tolist() == [[0, 1], [1, 3]]
    normal = gradient_importance(model, IDS, gate=gate, normalize=True)
    np.testing.assert_allclose(np.nansum(normal**2, axis=1), 1.0, atol=1e-9)


def test_values_and_confidence_equal_loops_over_a_trace(model: Model):
    trace = trace_of(model.network.run(torch.tensor([IDS])), model.config)
    values, sure = pruning.value_importance(model, IDS), pruning.confidence(model, IDS)
    d_h = model.config.d_head
    for layer, head in HEADS:
        pattern, v = trace.pattern(layer, head), trace.v[layer, head]
        W_O = model.network.blocks[layer].attn.W_O.weight.numpy()[:, head * d_h : (head + 1) * d_h]
        moved, largest = [], []
        for i in range(1, len(IDS)):
            moved.append(sum(np.linalg.norm(pattern[i, j] * (W_O @ v[j])) for j in range(i + 1)))
            largest.append(max(pattern[i, j] for j in range(i + 1)))
        assert values[layer, head] == pytest.approx(np.mean(moved), abs=1e-5)
        assert sure[layer, head] == pytest.approx(np.mean(largest), abs=1e-6)


def test_marks_between_texts_do_not_count_for_confidence(bundled: Model):
    text = "The king<|endoftext|> gave the queen"
    trace, sure = bundled.trace(text), pruning.confidence(bundled, text)
    words = [i for i, token in enumerate(trace.details) if token.kind != "special"]
    assert 0 < len(words) < trace.n_tokens
    for layer, head in ((0, 0), (3, 0), (2, 5)):
        pattern = trace.pattern(layer, head)
        largest = [max(pattern[i, j] for j in words) for i in words if i]
        assert sure[layer, head] == pytest.approx(np.mean(largest), abs=1e-5)


def test_random_scores_are_seeded(model: Model):
    a, b = (pruning.random_importance(model.config, seed) for seed in (1, 2))
    assert np.array_equal(a, pruning.random_importance(model.config, 1))
    assert pruning.removal_order(a) != pruning.removal_order(b)


def test_queries_that_are_special_tokens_do_not_count(bundled: Model):
    text = "The king gave the ring.<|endoftext|>The queen gave"
    trace = bundled.trace(text)
    rows = [n for n in trace.text_queries if n > 0]
    assert len(rows) == trace.n_tokens - 2
    found = pruning.value_importance(bundled, text)
    norms = value_norms(bundled, trace, 2, 5)
    assert found[2, 5] == pytest.approx((trace.pattern(2, 5)[rows] @ norms).mean(), abs=1e-5)
    whole = Pass.of(bundled, text)
    ablated = whole.without([(0, 1)])
    a, b = (
        passes.pattern_and_values(bundled.network.blocks[2], one.resid[2])[0][5]
        for one in (whole, ablated)
    )
    expected = float((a - b).abs()[rows].sum(-1).mean() / 2)
    change = pruning.pattern_change(whole, ablated, trace.text_queries)
    assert change[2, 5] == pytest.approx(expected, abs=1e-6)
