"""Structural pruning computes the same from fewer weights."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from support.models import fingerprint
from support.pruning import HEADS, IDS, OTHER_IDS, model_of
from tokenizers import Tokenizer

from mha_viz import pruning
from mha_viz.errors import HeadNotFound, ShapeError
from mha_viz.lessons.grouped_query import grouped_gpt2
from mha_viz.model import Model
from mha_viz.pruning import Pass, prune, pruned_model, size

CUTS = [
    [(0, 1)],
    [(1, 3), (0, 0), (1, 0), (0, 0)],
    [(0, h) for h in range(4)],
    [(0, 2), *[(1, h) for h in range(4)]],
    HEADS,
    [],
]


@pytest.mark.parametrize("changes", [{}, {"tie_word_embeddings": False}], ids=str)
@pytest.mark.parametrize("heads", CUTS, ids=str)
def test_a_pruned_network_computes_what_a_gate_does(
    gpt2: Callable[..., Any], tokenizer: Tokenizer, heads: list, changes: dict
):
    model = model_of(gpt2(5, **changes), tokenizer)
    ids = torch.tensor([IDS])
    gate = pruning.gate_without(model.config, heads)
    expected = model.network(ids, head_gate=gate)
    few = prune(model, heads)
    torch.testing.assert_close(few(ids), expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(few.run(ids).logits, expected[:, -1], atol=1e-5, rtol=0)
    assert not few.training
    assert not any(p.requires_grad for p in few.parameters())


def test_unchanged_weights_are_shared_and_the_model_does_not_change(tiny: Model):
    before = fingerprint(tiny.network)
    few = prune(tiny.network, [(1, 2)])
    ours, theirs = few.state_dict(), tiny.network.state_dict()
    copied = {name for name in ours if ours[name].data_ptr() != theirs[name].data_ptr()}
    assert copied == {
        f"blocks.1.attn.{name}" for name in ("W_QKV.weight", "W_QKV.bias", "W_O.weight")
    }
    assert few.W_U.weight is few.wte.weight
    assert fingerprint(tiny.network) == before


def test_the_weights_of_a_removed_head_are_those_of_its_rows_and_columns(tiny: Model):
    attn, few = tiny.network.blocks[0].attn, prune(tiny, [(0, 1), (0, 2)]).blocks[0].attn
    rows = [
        i
        for part in range(3)
        for head in (0, 3)
        for i in range(32 * part + 8 * head, 32 * part + 8 * head + 8)
    ]
    assert torch.equal(few.W_QKV.weight, attn.W_QKV.weight[rows])
    assert torch.equal(few.W_QKV.bias, attn.W_QKV.bias[rows])
    assert torch.equal(few.W_O.weight, attn.W_O.weight[:, [*range(8), *range(24, 32)]])
    assert torch.equal(few.W_O.bias, attn.W_O.bias)


def test_pruning_a_head_saves_its_parameters(tiny: Model):
    whole, few = size(tiny.network), size(prune(tiny, [(0, 1), (1, 0), (1, 3)]))
    C, d_h = 32, 8
    assert whole.n_parameters == tiny.description.n_parameters
    assert whole.n_parameters - few.n_parameters == 3 * (4 * C * d_h + 3 * d_h)
    assert whole.n_bytes - few.n_bytes == 4 * (whole.n_parameters - few.n_parameters)
    assert (whole.n_heads, few.n_heads) == (8, 5)


def test_pruned_twice_is_pruned_once(tiny: Model):
    once = prune(tiny, [(0, 0), (0, 2), (1, 2)])
    twice = prune(prune(tiny, [(0, 0)]), [(1, 2), (0, 2)])
    assert once.config == twice.config
    a, b = once.state_dict(), twice.state_dict()
    assert all(torch.equal(a[name], b[name]) for name in a)
    with pytest.raises(HeadNotFound, match="L0 H2 has been pruned from this model"):
        prune(once, [(0, 2)])


def test_pruning_functions_work_on_a_pruned_model(tiny: Model):
    heads = [(0, 1), *[(1, h) for h in range(4)]]
    few = pruned_model(tiny, heads)
    base = Pass.of(tiny, IDS).without(heads)
    for found, expected in (
        (pruning.ablate_each_head(few, IDS), pruning.ablation_effects(base)),
        (
            pruning.gradient_importance(few, IDS),
            pruning.gradient_importance(tiny, IDS, gate=base.gate),
        ),
    ):
        np.testing.assert_allclose(found, expected, atol=1e-5)
        assert np.isnan(found).sum() == 5
    for score in (pruning.value_importance, pruning.confidence):
        assert np.argwhere(np.isfinite(score(few, IDS))).tolist() == [[0, 0], [0, 2], [0, 3]]
    replacement = pruning.make_replacement(few, "mean", 24, [OTHER_IDS])
    assert np.isfinite(pruning.ablate_each_head(few, IDS, method=replacement)).sum() == 3
    change = pruning.pattern_change(
        Pass.of(few, IDS), Pass.of(few, IDS).without([(0, 0)], replacement)
    )
    assert np.isnan(change).sum() == 5
    for strategy in pruning.STRATEGIES:
        points = list(pruning.curve(few, IDS, pruning.order(few, IDS, strategy)))
        assert sorted(head for p in points for head in p.removed) == [(0, 0), (0, 2), (0, 3)]


def test_a_pruned_model_is_described_as_such(tiny: Model):
    few = pruned_model(tiny, [(0, 1), (1, 0)])
    assert few.description.n_parameters == size(few.network).n_parameters
    assert few.description.weights_hash != tiny.description.weights_hash
    assert few.description.notes[-1] == "2 of its heads were pruned here."
    trace = few.trace("the cat sat")
    assert np.isnan(trace.q[0, 1]).all()
    assert np.isfinite(trace.q[0, 0]).all()


def test_time_is_measured_in_turns(tiny: Model):
    taken = pruning.forward_seconds([tiny, pruned_model(tiny, HEADS)], IDS, repeats=3)
    assert len(taken) == 2
    assert all(np.isfinite(t) and t > 0 for t in taken)


def test_heads_that_cannot_be_pruned(tiny: Model):
    with pytest.raises(HeadNotFound, match="L0 H4 is not in this model"):
        prune(tiny, [(0, 4)])
    with pytest.raises(ShapeError, match="share 2 key/value heads"):
        prune(grouped_gpt2(tiny.network, 2), [(0, 1)])
