"""Mistakes in attention: none is the right module, and each breaks what it is said to break."""

import pytest
import torch

from mha_viz.errors import ShapeError
from mha_viz.lessons.bugs import FAULTS, divergence, faulty, run_with
from mha_viz.lessons.walkthrough import random_layer
from mha_viz.model import Model

IDS = torch.tensor([[5, 17, 201, 5, 17, 44, 8]])


def test_without_a_fault_the_run_is_the_network(tiny: Model):
    found = run_with(tiny.network, IDS, None, 1)
    with torch.inference_mode():
        torch.testing.assert_close(found.logits, tiny.network(IDS)[0], atol=1e-5, rtol=0)
    assert list(found.pattern.shape) == [4, 7, 7]


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_changes_what_comes_next(tiny: Model, fault: str):
    right, wrong = (run_with(tiny.network, IDS, f, 0) for f in (None, fault))
    assert float(divergence(right.logits, wrong.logits)[-1]) > 1e-3


def test_each_fault_breaks_what_it_says():
    attention, x = random_layer(24, 4, 1, 6)
    record = attention.explicit(x)

    def pattern(fault: str) -> torch.Tensor:
        return faulty(attention, x, fault)[0]

    future = torch.ones(6, 6).triu(1).bool()
    assert bool((pattern("no mask")[..., future] > 0).all())
    assert bool((pattern("no scale")[..., future] == 0).all())
    unscaled = record.q @ record.k.transpose(-2, -1)
    expected = unscaled.masked_fill(future, -torch.inf).softmax(-1)
    torch.testing.assert_close(pattern("no scale"), expected, atol=1e-6, rtol=0)
    # Merged wrongly, the patterns are those of the right module; only the output is not.
    torch.testing.assert_close(pattern("merge as it lies"), record.pattern, atol=1e-6, rtol=0)
    assert not torch.allclose(faulty(attention, x, "merge as it lies")[1], record.out, atol=1e-3)
    swapped = (unscaled.transpose(-2, -1) * attention.scale).masked_fill(future, -torch.inf)
    torch.testing.assert_close(pattern("q and k swapped"), swapped.softmax(-1), atol=1e-6, rtol=0)
    # Viewed straight to heads, head 0 holds the first positions whole, not its own columns.
    q = attention.W_QKV(x)[..., :24].reshape(1, 4, 6, 6)
    k = attention.W_QKV(x)[..., 24:48].reshape(1, 4, 6, 6)
    scores = (q @ k.transpose(-2, -1) * attention.scale).masked_fill(future, -torch.inf)
    torch.testing.assert_close(pattern("no transpose"), scores.softmax(-1), atol=1e-6, rtol=0)


def test_a_fault_that_is_not_known_is_named():
    attention, x = random_layer(8, 2, 1, 2)
    with pytest.raises(ShapeError, match=r"no fault `typo`.*no scale"):
        faulty(attention, x, "typo")


def test_divergence_is_that_of_torch():
    a, b = torch.randn(2, 3, 50, generator=torch.Generator().manual_seed(0)).unbind(0)
    expected = torch.nn.functional.kl_div(
        b.log_softmax(-1), a.log_softmax(-1), log_target=True, reduction="none"
    ).sum(-1)
    torch.testing.assert_close(divergence(a, b), expected, atol=1e-6, rtol=0)
    assert float(divergence(a, a).abs().max()) == 0
