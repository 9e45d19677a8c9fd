"""Bugs in attention: none is the correct module, and each one breaks what it says it breaks."""

import pytest
import torch

from mha_viz.errors import ShapeError
from mha_viz.lessons.bugs import BUGS, attention_with_bug, divergence, run_with_bug
from mha_viz.lessons.walkthrough import random_layer
from mha_viz.model import Model

IDS = torch.tensor([[5, 17, 201, 5, 17, 44, 8]])


def test_without_a_bug_the_run_is_the_network(tiny: Model):
    run = run_with_bug(tiny.network, IDS, None, 1)
    with torch.inference_mode():
        torch.testing.assert_close(run.logits, tiny.network(IDS)[0], atol=1e-5, rtol=0)
    assert list(run.pattern.shape) == [4, 7, 7]


@pytest.mark.parametrize("bug", BUGS)
def test_every_bug_changes_the_prediction(tiny: Model, bug: str):
    correct, wrong = (run_with_bug(tiny.network, IDS, b, 0) for b in (None, bug))
    assert float(divergence(correct.logits, wrong.logits)[-1]) > 1e-3


def test_each_bug_breaks_what_it_says():
    attention, x = random_layer(24, 4, 1, 6)
    record = attention.explicit(x)

    def pattern(bug: str) -> torch.Tensor:
        return attention_with_bug(attention, x, bug)[0]

    future = torch.ones(6, 6).triu(1).bool()
    assert bool((pattern("no mask")[..., future] > 0).all())
    assert bool((pattern("no scale")[..., future] == 0).all())
    unscaled = record.q @ record.k.transpose(-2, -1)
    expected = unscaled.masked_fill(future, -torch.inf).softmax(-1)
    torch.testing.assert_close(pattern("no scale"), expected, atol=1e-6, rtol=0)
    # Without the transpose back only the output is wrong, not the patterns.
    torch.testing.assert_close(pattern("no transpose back"), record.pattern, atol=1e-6, rtol=0)
    out = attention_with_bug(attention, x, "no transpose back")[1]
    assert not torch.allclose(out, record.out, atol=1e-3)
    swapped = (unscaled.transpose(-2, -1) * attention.scale).masked_fill(future, -torch.inf)
    torch.testing.assert_close(pattern("q and k swapped"), swapped.softmax(-1), atol=1e-6, rtol=0)
    # Without the transpose head 0 holds the first positions whole, not its own columns.
    q = attention.W_QKV(x)[..., :24].reshape(1, 4, 6, 6)
    k = attention.W_QKV(x)[..., 24:48].reshape(1, 4, 6, 6)
    scores = (q @ k.transpose(-2, -1) * attention.scale).masked_fill(future, -torch.inf)
    torch.testing.assert_close(pattern("no transpose"), scores.softmax(-1), atol=1e-6, rtol=0)


def test_an_unknown_bug_is_named():
    attention, x = random_layer(8, 2, 1, 2)
    with pytest.raises(ShapeError, match=r"no bug `typo`.*no scale"):
        attention_with_bug(attention, x, "typo")


def test_divergence_is_that_of_torch():
    a, b = torch.randn(2, 3, 50, generator=torch.Generator().manual_seed(0)).unbind(0)
    expected = torch.nn.functional.kl_div(
        b.log_softmax(-1), a.log_softmax(-1), log_target=True, reduction="none"
    ).sum(-1)
    torch.testing.assert_close(divergence(a, b), expected, atol=1e-6, rtol=0)
    assert float(divergence(a, a).abs().max()) == 0
