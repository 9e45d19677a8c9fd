"""Grouped GPT-2s: with as many groups as heads, nothing changes; a group holds its heads' mean."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from support.models import ours_of

from mha_viz.attention import MultiHeadAttention
from mha_viz.errors import ShapeError
from mha_viz.lessons.grouped_query import grouped, grouped_gpt2
from mha_viz.model import Model
from mha_viz.pruning import size

IDS = torch.tensor([[3, 140, 77, 3, 299, 12]])


@pytest.mark.parametrize("changes", [{}, {"tie_word_embeddings": False}])
def test_as_many_groups_as_heads_change_nothing(gpt2: Callable[..., Any], changes: dict):
    network = ours_of(gpt2(1, **changes))
    assert torch.equal(grouped_gpt2(network, 4)(IDS), network(IDS))


def test_a_group_has_the_mean_of_its_keys_and_values():
    torch.manual_seed(0)
    attention = MultiHeadAttention(24, 6)
    torch.nn.init.normal_(attention.W_QKV.bias)
    x = torch.randn(2, 5, 24)
    q, k, v = attention.project(x)
    few = grouped(attention, 2)
    q2, k2, v2 = few.project(x)
    torch.testing.assert_close(q2, q, atol=1e-6, rtol=0)
    for mean, heads in ((k2, k), (v2, v)):
        expected = heads.view(2, 2, 3, 5, 4).mean(dim=2)
        torch.testing.assert_close(mean, expected, atol=1e-6, rtol=0)
    assert few.W_QKV.weight.shape == ((6 + 2 * 2) * 4, 24)


def test_heads_with_equal_keys_and_values_lose_nothing_by_sharing():
    torch.manual_seed(0)
    attention = MultiHeadAttention(24, 6)
    with torch.no_grad():
        kv = attention.W_QKV.weight[24:].view(2, 6, 4, 24)
        kv.copy_(kv[:, :1].clone())
        attention.W_QKV.bias.zero_()
    x = torch.randn(2, 5, 24)
    for n_kv_heads in (1, 2, 3):
        torch.testing.assert_close(
            grouped(attention, n_kv_heads)(x), attention(x), atol=1e-6, rtol=0
        )


def test_the_model_that_is_grouped_stays_as_it_is(gpt2: Callable[..., Any]):
    network = ours_of(gpt2(1))
    before = {name: weight.clone() for name, weight in network.state_dict().items()}
    few = grouped_gpt2(network, 1)
    assert not torch.allclose(few(IDS), network(IDS))
    assert all(torch.equal(before[n], w) for n, w in network.state_dict().items())
    assert few.wte.weight.data_ptr() == network.wte.weight.data_ptr()


@pytest.mark.parametrize("G", [6, 3, 2, 1])
def test_a_grouped_model_has_one_matrix_for_both_embeddings(bundled: Model, G: int):
    few = grouped_gpt2(bundled.network, G)
    assert few.W_U.weight is few.wte.weight
    L, C, d_h = 4, 192, 32
    assert size(few).n_parameters == 2_762_880 - L * 2 * (6 - G) * d_h * (C + 1)


def test_training_a_grouped_model_updates_the_shared_matrix_once(gpt2: Callable[..., Any]):
    few = grouped_gpt2(ours_of(gpt2(1)), 2).requires_grad_()
    logits = few(IDS)[0, :-1]
    torch.nn.functional.cross_entropy(logits, IDS[0, 1:]).backward()
    before, gradient = few.wte.weight.detach().clone(), few.wte.weight.grad
    torch.optim.SGD(few.parameters(), lr=0.1).step()
    torch.testing.assert_close(few.wte.weight, before - 0.1 * gradient)
    assert torch.equal(few.W_U.weight, few.wte.weight)


def test_a_run_of_a_grouped_model_has_keys_for_every_head(gpt2: Callable[..., Any]):
    network = ours_of(gpt2(1))
    run = grouped_gpt2(network, 2).run(IDS)
    k = run.qkv[1]
    assert list(k.shape) == [2, 1, 4, 6, 8]
    assert torch.equal(k[:, :, 0], k[:, :, 1])
    assert not torch.equal(k[:, :, 1], k[:, :, 2])


def test_groups_that_do_not_fit_are_rejected(gpt2: Callable[..., Any]):
    with pytest.raises(ShapeError, match="n_kv_heads = 3"):
        grouped_gpt2(ours_of(gpt2(1)), 3)
