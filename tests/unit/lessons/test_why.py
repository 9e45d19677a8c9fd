"""The code of one head and of all heads: what each computes, and which lines are the same."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from support.models import ours_of, some_ids

from mha_viz.attention import MultiHeadAttention
from mha_viz.head import Head
from mha_viz.lessons.grouped_query import grouped_gpt2
from mha_viz.lessons.walkthrough import random_layer
from mha_viz.lessons.why import why
from mha_viz.model import Model
from mha_viz.network import Network
from mha_viz.pruning import prune

TEXTS = ["The king gave the princess a golden ring", "a", "Ada saw a red fox. Ben saw it. " * 3]
ROUNDING = 2e-5


@pytest.fixture(params=["plain", "grouped", "pruned", "scaled by layer"])
def network(request: pytest.FixtureRequest, gpt2: Callable[..., Any]) -> Network:
    if request.param == "scaled by layer":
        return ours_of(gpt2(3, scale_attn_by_inverse_layer_idx=True))
    model = ours_of(gpt2(3))
    if request.param == "pruned":
        return prune(model, [Head(0, 1), Head(1, 0), Head(1, 2), Head(1, 3)])
    return grouped_gpt2(model, 2) if request.param == "grouped" else model


def check(attention: MultiHeadAttention, x: torch.Tensor) -> None:
    """Every result of both codes is the module's, and the lines stand level."""
    T, C = x.shape[1:]
    H, d_h = C // attention.d_head, attention.d_head
    for head in range(attention.n_heads):
        found = why(attention, x, head)
        assert found.n_heads == H
        differences = (found.z, found.every_z, found.out, found.module, found.one_of_all)
        assert max(*differences, found.one_in_module) < ROUNDING
        assert found.z <= found.every_z
    same = [pair.all.code.split(" = ")[0] for pair in found.pairs if pair.same and pair.all]
    assert same == ["s", "s", "z"]
    for pair in found.pairs:
        if pair.same and pair.one and pair.all:  # one axis more, and nothing else
            assert pair.all.shape == pair.one.shape.replace("[", f"[{H}, ")
    shapes = [pair.all.shape for pair in found.pairs if pair.all]
    assert shapes[1] == f"3 × [{H}, {T}, {d_h}]"
    assert shapes[-1] == f"[{T}, {C}]"
    assert [pair.one is None for pair in found.pairs] == [False, True, *[False] * 3, True, False]


def test_both_codes_compute_what_the_module_does(network: Network) -> None:
    for layer, block in enumerate(network.blocks):
        for T in (1, 6):
            check(block.attn, network.attention_input(some_ids(T, 300, seed=T), layer))


@pytest.mark.parametrize("text", TEXTS)
def test_both_codes_agree_on_texts(bundled: Model, text: str) -> None:
    ids = torch.tensor([bundled.trace(text).token_ids])
    for layer in (0, 3):
        check(bundled.network.blocks[layer].attn, bundled.network.attention_input(ids, layer))


def test_one_head_is_plain_attention_to_the_last_digit() -> None:
    """With H = 1 the additional lines only add an axis of size 1: the same sums, in one order."""
    for seed in range(3):
        attention, x = random_layer(24, 1, 1, 7, seed=seed)
        found = why(attention, x, 0)
        assert (found.z, found.one_of_all) == (0.0, 0.0)
