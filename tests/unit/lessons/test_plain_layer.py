"""A layer as plain multi-head attention: other weights, the same function."""

import pytest
import torch

from mha_viz.attention import MultiHeadAttention
from mha_viz.errors import ShapeError
from mha_viz.lessons.grouped_query import grouped
from mha_viz.lessons.implementations import fused
from mha_viz.lessons.plain_layer import plain_layer
from mha_viz.lessons.walkthrough import random_layer


def unusual() -> list[tuple[MultiHeadAttention, str]]:
    """Layers that are not plain, and a word of the sentence that says why."""
    scaled, _ = random_layer(24, 4, 1, 1)
    scaled.scale = 1.0
    shared, _ = random_layer(24, 4, 1, 1)
    torch.manual_seed(0)
    pruned = MultiHeadAttention(24, 3, d_head=6)
    unbiased = MultiHeadAttention(24, 4, bias=False)
    return [(scaled, "multiplies"), (grouped(shared, 2), "share"), (pruned, "pruned"),
            (unbiased, "")]  # fmt: skip


@pytest.mark.parametrize("number", range(4))
def test_an_unusual_layer_computes_the_same_with_plain_weights(number: int) -> None:
    attention, word = unusual()[number]
    layer = plain_layer(attention)
    x = torch.randn(2, 5, 24)
    with torch.inference_mode():
        assert (fused(layer)(x) - attention(x)).abs().max() < 1e-5
    assert layer.W_QKV.shape == (72, 24)
    assert layer.n_heads == 4
    assert word in " ".join(layer.changes)
    assert len(layer.changes) == bool(word)


def test_a_plain_layer_keeps_its_weights() -> None:
    attention, _ = random_layer(24, 4, 1, 1)
    layer = plain_layer(attention)
    assert torch.equal(layer.W_QKV, attention.W_QKV.weight)
    assert torch.equal(layer.b_QKV, attention.W_QKV.bias)
    assert layer.changes == ()


def test_heads_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ShapeError, match="C = 24"):
        plain_layer(MultiHeadAttention(24, 3, d_head=7))
