"""Induction and prompts with two people, against the model's own logits."""

import math

import numpy as np
import pytest
import torch

from mha_viz import pruning
from mha_viz.errors import ShapeError, TextError
from mha_viz.model import Model
from mha_viz.pruning import Prompt


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


def test_tasks_that_a_tokenizer_does_not_allow(tiny: Model, bundled: Model):
    with pytest.raises(TextError, match="fewer than two of the names as single tokens"):
        pruning.ioi_prompts(tiny)
    with pytest.raises(TextError, match=r"` hippopotamus` is . tokens for bundled .*Choose a word"):
        pruning.logit_differences(bundled, [Prompt("A big", " hippopotamus", " dog")])
