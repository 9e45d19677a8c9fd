"""A forward pass, changed repeatedly, equals a fresh one."""

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from support.pruning import HEADS, IDS, OTHER_IDS, H, L
from torch.nn import functional as F

from mha_viz import pruning
from mha_viz.analysis import predictions
from mha_viz.app.samples import SAMPLES
from mha_viz.model import Model
from mha_viz.pruning import (
    ZERO,
    Pass,
    passes,
)


@pytest.mark.parametrize("method", pruning.METHODS)
def test_removing_nothing_changes_no_bit(tiny: Model, method: Any):
    replacement = pruning.make_replacement(tiny, method, len(IDS), [OTHER_IDS])
    whole = Pass.of(tiny, IDS)
    logits = tiny.network(torch.tensor([IDS]))
    for same in (
        whole,
        whole.without([], replacement),
        whole.without(HEADS, replacement).without([], replacement),
        Pass.of(tiny, IDS, gate=np.ones((L, H)), replacement=replacement),
    ):
        assert all(map(torch.equal, same.resid, whole.resid))
        assert torch.equal(tiny.network.unembed(same.resid[-1]), logits)
        assert np.array_equal(same.losses(), whole.losses())
    assert np.array_equal(pruning.divergence(whole, whole.without([])), np.zeros(len(IDS)))
    assert np.array_equal(pruning.pattern_change(whole, whole.without([])), np.zeros((L, H)))


def test_the_order_of_toggles_does_not_matter(bundled: Model):
    text = "Once upon a time there was a king who had a daughter."
    heads = [(3, 4), (0, 1), (2, 5), (0, 2)]
    replacement = pruning.make_replacement(bundled, "mean", 64)
    for chosen in (ZERO, replacement):
        gate = pruning.gate_without(bundled.config, heads)
        fresh = Pass.of(bundled, text, gate=gate, replacement=chosen)
        for order in (heads, heads[::-1], [heads[i] for i in (2, 0, 3, 1)]):
            one, removed = Pass.of(bundled, text), []
            for head in [*order, (1, 1)]:  # the last one goes, and comes back
                removed.append(head)
                one = one.without(removed, chosen)
            one = one.without(order, chosen)
            assert all(map(torch.equal, one.resid, fresh.resid))


def test_layers_below_a_change_are_not_run_again(bundled: Model):
    whole = Pass.of(bundled, "Once upon a time")
    changed = whole.without([(2, 1)])
    assert [a is b for a, b in zip(whole.resid, changed.resid, strict=True)] == [
        True, True, True, False, False,
    ]  # fmt: skip
    back = changed.without([(2, 1), (3, 0)])
    assert back.resid[3] is changed.resid[3]
    replacement = pruning.make_replacement(bundled, "mean", 64)
    assert whole.without([], replacement).resid[-1] is whole.resid[-1]
    assert changed.without([(2, 1)], replacement).resid[3] is not changed.resid[3]


def test_a_gate_between_one_and_zero_is_that_of_the_network(model: Model):
    gate = torch.rand(L, H, generator=torch.Generator().manual_seed(1))
    one = Pass.of(model, IDS, gate=gate)
    logits = model.network(torch.tensor([IDS]), head_gate=gate)
    assert torch.equal(model.network.unembed(one.resid[-1]), logits)
    gate.zero_()
    assert float(one.gate.max()) > 0, "what is kept does not change with what was given"


@pytest.mark.parametrize("size", [1, 77, 300, 10**6])
def test_the_parts_of_the_vocabulary_change_nothing(
    model: Model, monkeypatch: pytest.MonkeyPatch, size: int
):
    logits = model.network(torch.tensor([IDS]))[0]
    monkeypatch.setattr(passes, "VOCABULARY_PART", size)
    one = Pass.of(model, IDS)
    expected = F.cross_entropy(logits[:-1], torch.tensor(IDS[1:]), reduction="none")
    np.testing.assert_allclose(one.losses(), expected.numpy(), atol=1e-5)
    assert torch.equal(one.best_tokens(), logits.argmax(-1))
    assert one.loss == pytest.approx(float(expected.mean()), abs=1e-6)
    assert np.array_equal(pruning.losses(model, IDS), one.losses())


def test_a_toggle_runs_each_layer_above_it_once_and_no_other(
    bundled: Model, monkeypatch: pytest.MonkeyPatch
):
    """This keeps a toggle quick; `python scripts/bench.py --only ablation` times it."""
    whole, run_layer = Pass.of(bundled, "Once upon a time"), passes.run_layer
    run: list[int] = []

    def counted(network: Any, layer: int, *more: Any) -> torch.Tensor:
        run.append(layer)
        return run_layer(network, layer, *more)

    monkeypatch.setattr(passes, "run_layer", counted)
    n_layers = bundled.config.n_layers
    for layer in range(n_layers):
        run.clear()
        one = whole.without([(layer, 1)])
        one.losses(), pruning.next_tokens(whole, one), pruning.divergence(whole, one)
        pruning.pattern_change(whole, one)
        assert run == list(range(layer, n_layers))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("text", [0, 1, 2])
def test_losses_are_the_float32_log_softmax_of_the_models_logits(
    bundled: Model, dtype: torch.dtype, text: int
):
    """Rounding the logits and the target's logit differently would make a loss wrong, even < 0."""
    model = replace(bundled, network=copy.deepcopy(bundled.network).to(dtype))
    ids = bundled.encode(list(SAMPLES.values())[text])[0]
    with torch.inference_mode():
        logits = model.network(torch.tensor([ids]))[0]
    expected = F.cross_entropy(logits[:-1].float(), torch.tensor(ids[1:]), reduction="none")
    found = Pass.of(model, ids).losses()
    # In bfloat16, the products of a part of the vocabulary may round to a neighbouring number.
    atol = 1e-4 if dtype is torch.float32 else 2 * torch.finfo(dtype).eps
    np.testing.assert_allclose(found, expected, atol=atol, rtol=0)
    predicted = predictions.join(list(predictions.predict(model, ids, 1)))
    np.testing.assert_allclose(found, predicted.losses[:-1], atol=atol, rtol=0)
