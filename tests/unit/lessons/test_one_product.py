"""One product gives what a product for each matrix gives."""

import pytest
import torch

from mha_viz.attention import MultiHeadAttention
from mha_viz.lessons.one_product import at_once, largest_difference, one_by_one


@pytest.mark.parametrize(
    ("C", "H", "G", "bias"), [(24, 4, 4, True), (24, 6, 2, False), (8, 1, 1, True)]
)
def test_both_ways_give_the_layers_product(C: int, H: int, G: int, bias: bool) -> None:
    attention = MultiHeadAttention(C, H, n_kv_heads=G, bias=bias).requires_grad_(False)
    x = torch.randn(2, 5, C)
    W = attention.W_QKV.weight.T
    b = attention.W_QKV.bias if bias else torch.zeros(len(W[0]))
    for product in (one_by_one(x, W, b, C // H), at_once(x, W, b)):
        torch.testing.assert_close(product, attention.W_QKV(x), atol=1e-5, rtol=1e-5)
    assert largest_difference(attention, x) < 1e-5
