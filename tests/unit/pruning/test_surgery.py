"""Structural pruning computes the same from fewer weights; and the small tasks."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from support.models import fingerprint
from support.pruning import HEADS, IDS, OTHER_IDS, model_of
from tokenizers import Tokenizer

from mha_viz import pruning
from mha_viz.errors import HeadNotFound, ShapeError, TextError
from mha_viz.lessons.grouped_query import grouped_gpt2
from mha_viz.model import Model
from mha_viz.pruning import Pass, Prompt, prune, pruned_model, size

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


def test_what_stays_whole_is_shared_and_nothing_of_the_model_changes(tiny: Model):
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


def test_a_head_is_worth_so_many_parameters(tiny: Model):
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


def test_the_lab_works_on_a_pruned_model(tiny: Model):
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
    assert all(0 < t < 10 for t in taken)


def test_heads_that_cannot_be_pruned(tiny: Model):
    with pytest.raises(HeadNotFound, match="L0 H4 is not in this model"):
        prune(tiny, [(0, 4)])
    with pytest.raises(ShapeError, match="share 2 keys and values"):
        prune(grouped_gpt2(tiny.network, 2), [(0, 1)])


# --- tasks ----------------------------------------------------------------------------------------


def test_repeated_tokens_are_words_seeded_and_written_twice(tiny: Model):
    found = [pruning.repeated_tokens(tiny, segment=32, seed=seed) for seed in range(20)]
    end = tiny.tokenizer.token_to_id("<|endoftext|>")
    assert all(ids[:32] == ids[32:] for ids in found)
    assert len({tuple(ids) for ids in found}) == 20
    assert found[3] == pruning.repeated_tokens(tiny, segment=32, seed=3)
    assert not any(end in ids for ids in found)
    assert len({i for ids in found for i in ids}) > 150, "drawn from all that are whole characters"
    with pytest.raises(ShapeError, match="from 2 to 32"):
        pruning.repeated_tokens(tiny, segment=33)


def test_induction_is_the_loss_on_the_second_copy(tiny: Model):
    losses = []
    for seed in (0, 1):
        ids = torch.tensor([pruning.repeated_tokens(tiny, segment=20, seed=seed)])
        log_p = tiny.network(ids)[0].log_softmax(-1)
        losses += [-float(log_p[i - 1, ids[0, i]]) for i in range(21, 40)]
    found = pruning.induction_loss(tiny, segment=20, seeds=(0, 1))
    assert found == pytest.approx(np.mean(losses), abs=1e-5)


def test_the_bundled_model_needs_its_induction_head(bundled: Model):
    """The head that the model's card names: at least five times what the median head costs."""
    costs = pruning.induction_effects(bundled)
    assert costs[3, 4] == costs[3].max()
    assert costs[3, 4] >= 5 * np.median(np.abs(costs))
    whole = pruning.induction_loss(bundled)
    assert whole < 0.1 < math.log(bundled.config.vocab_size)
    gate = pruning.gate_without(bundled.config, [(3, 4)])
    without = pruning.induction_loss(bundled, gate=gate)
    assert without - whole == pytest.approx(costs[3, 4], abs=1e-5)


def test_logit_differences(bundled: Model):
    prompts = [Prompt("The king and the", " queen", " little"), Prompt("He said to", " her", " me")]
    gate = pruning.gate_without(bundled.config, [(2, 5), (3, 0)])
    for g in (None, gate):
        found = pruning.logit_differences(bundled, prompts, gate=g)
        for prompt, difference in zip(prompts, found, strict=True):
            ids = torch.tensor([bundled.encode(prompt.text)[0]])
            logits = bundled.network(ids, head_gate=g)[0, -1]
            right, wrong = (
                bundled.tokenizer.token_to_id(f"Ġ{w[1:]}") for w in (prompt.right, prompt.wrong)
            )
            assert difference == pytest.approx(float(logits[right] - logits[wrong]), abs=1e-5)


def test_prompts_with_two_people(bundled: Model):
    prompts = pruning.ioi_prompts(bundled, 24)
    assert prompts == pruning.ioi_prompts(bundled, 24)
    assert prompts != pruning.ioi_prompts(bundled, 24, seed=1)
    firsts = set()
    for prompt in prompts:
        words = prompt.text.replace(",", "").split()
        a, b = prompt.right[1:], prompt.wrong[1:]
        assert (words.count(a), words.count(b)) == (1, 2)
        assert prompt.text.index(b, prompt.text.index(",")) > prompt.text.index(a)
        bundled.single_token(prompt.right), bundled.single_token(prompt.wrong)
        firsts.add(words.index(a) < words.index(b))
    assert firsts == {True, False}, "either may be named first"
    assert len({prompt.text.split()[0] for prompt in prompts}) >= 4, "several templates"


def test_what_a_tokenizer_cannot_ask(tiny: Model, bundled: Model):
    with pytest.raises(TextError, match="fewer than two of the names as single tokens"):
        pruning.ioi_prompts(tiny)
    with pytest.raises(TextError, match=r"` hippopotamus` is . tokens for bundled .*Choose a word"):
        pruning.logit_differences(bundled, [Prompt("A big", " hippopotamus", " dog")])
