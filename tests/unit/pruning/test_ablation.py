"""The effect of removing each head: equal to transformers with hooks or with zeroed rows."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from support.pruning import D_H, HEADS, IDS, OTHER_IDS, H, L, model_of, their_loss
from tokenizers import Tokenizer
from torch.nn import functional as F

from mha_viz import pruning
from mha_viz.lessons.grouped_query import grouped_gpt2
from mha_viz.model import Model
from mha_viz.pruning import (
    Pass,
    ablate_each_head,
    ablation,
)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"tie_word_embeddings": False},
        {"scale_attn_by_inverse_layer_idx": True, "n_layer": 3},
        {"n_head": 1},
    ],
    ids=str,
)
def test_every_head_alone_equals_a_loop_with_hooks_on_transformers(
    gpt2: Callable[..., Any], tokenizer: Tokenizer, changes: dict
):
    theirs = gpt2(5, **changes)
    found = ablate_each_head(model_of(theirs, tokenizer), IDS)
    whole = their_loss(theirs, IDS)
    assert found.shape == (theirs.config.n_layer, theirs.config.n_head)
    assert np.abs(found).max() > 1e-2, "the heads matter"
    for layer, head in np.ndindex(found.shape):
        expected = their_loss(theirs, IDS, [(layer, head)]) - whole
        assert found[layer, head] == pytest.approx(expected, abs=1e-5)


def test_every_head_alone_equals_zeroed_rows_of_c_proj(
    gpt2: Callable[..., Any], tokenizer: Tokenizer
):
    theirs = gpt2(5)
    found = ablate_each_head(model_of(theirs, tokenizer), IDS)
    whole = their_loss(theirs, IDS)
    for layer, head in HEADS:
        cut = gpt2(5)
        cut.transformer.h[layer].attn.c_proj.weight[head * D_H : (head + 1) * D_H] = 0.0
        assert found[layer, head] == pytest.approx(their_loss(cut, IDS) - whole, abs=1e-5)


def test_a_text_and_its_ids_give_the_same(tiny: Model):
    text = "the cat sat on the mat"
    ids = tiny.encode(text)[0]
    expected = ablate_each_head(tiny, text)
    assert np.array_equal(ablate_each_head(tiny, ids), expected)
    assert np.array_equal(ablate_each_head(tiny, np.array(ids)), expected)
    assert np.array_equal(ablate_each_head(tiny, torch.tensor(ids)), expected)


@pytest.mark.parametrize("batch", [1, 50, 10**6])
def test_how_many_heads_run_at_once_changes_nothing(
    model: Model, monkeypatch: pytest.MonkeyPatch, batch: int
):
    expected = ablate_each_head(model, IDS)
    monkeypatch.setattr(ablation, "BATCH", batch)
    np.testing.assert_allclose(ablate_each_head(model, IDS), expected, atol=1e-6)


@pytest.mark.parametrize("method", ["zero", "mean"])
def test_a_head_beside_others_that_are_ablated(
    gpt2: Callable[..., Any], tokenizer: Tokenizer, method: Any
):
    theirs, removed = gpt2(5), [(0, 1), (1, 0)]
    model = model_of(theirs, tokenizer)
    replacement = pruning.make_replacement(model, method, len(IDS), [OTHER_IDS])
    z = torch.zeros(L, H, D_H) if replacement.z is None else replacement.z[:, :, 0]
    gate = pruning.gate_without(model.config, removed)
    found = ablate_each_head(model, IDS, method=replacement, gate=gate)
    before = their_loss(theirs, IDS, removed, lambda *head: z[head])
    for head in HEADS:
        if head in removed:
            assert np.isnan(found[head])
        else:
            expected = their_loss(theirs, IDS, [*removed, head], lambda *head: z[head]) - before
            assert found[head] == pytest.approx(expected, abs=1e-5)


def test_the_loss_may_be_that_of_the_end_alone(model: Model):
    whole = Pass.of(model, IDS)
    found = ablate_each_head(model, IDS, first=10)
    for head in HEADS:
        expected = (whole.without([head]).losses()[9:] - whole.losses()[9:]).mean()
        assert found[head] == pytest.approx(expected, abs=1e-5)


def test_heads_that_share_keys_and_values_are_removed_one_by_one(model: Model):
    few = Model(grouped_gpt2(model.network, 2), model.tokenizer, model.description)
    found, whole = ablate_each_head(few, IDS), Pass.of(few, IDS)
    for head in HEADS:
        gate = pruning.gate_without(few.config, [head])
        logits = few.network(torch.tensor([IDS]), head_gate=gate)[0]
        loss = F.cross_entropy(logits[:-1], torch.tensor(IDS[1:]))
        assert found[head] == pytest.approx(float(loss) - whole.loss, abs=1e-5)


def test_progress_is_reported_layer_by_layer(tiny: Model):
    reported: list[float] = []
    ablate_each_head(tiny, IDS, on_progress=reported.append)
    assert reported == [0.5, 1.0]


def test_effects_by_token_have_the_effects_as_their_mean(model: Model):
    by_token = pruning.ablate_each_head_by_token(model, IDS)
    assert by_token.shape == (*pruning.ablate_each_head(model, IDS).shape, len(IDS) - 1)
    np.testing.assert_allclose(by_token.mean(-1), pruning.ablate_each_head(model, IDS), atol=1e-12)
    full, ablated = pruning.losses(model, IDS), Pass.of(model, IDS).without([(1, 2)]).losses()
    np.testing.assert_allclose(by_token[1, 2], ablated - full, atol=2e-6)
