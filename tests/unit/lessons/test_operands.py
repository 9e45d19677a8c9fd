"""Operands: what is multiplied adds up to the tensors of the module itself."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from support.models import ours_of, some_ids

from mha_viz.head import Head
from mha_viz.lessons.grouped_query import grouped_gpt2
from mha_viz.lessons.operands import PARTS, Operands, operands_of, operands_of_layer
from mha_viz.lessons.walkthrough import random_layer
from mha_viz.model import Model
from mha_viz.network import Network
from mha_viz.pruning import prune

KINDS = ["plain", "grouped", "multi-query", "pruned", "scaled by layer"]


@pytest.fixture(params=KINDS)
def network(request: pytest.FixtureRequest, gpt2: Callable[..., Any]) -> Network:
    if request.param == "scaled by layer":
        return ours_of(gpt2(3, scale_attn_by_inverse_layer_idx=True))
    model = ours_of(gpt2(3))
    if request.param == "pruned":
        return prune(model, [Head(0, 1), Head(1, 0), Head(1, 2), Head(1, 3)])
    n_groups = {"plain": 4, "grouped": 2, "multi-query": 1}[request.param]
    return grouped_gpt2(model, n_groups)


def each(network: Network, lengths: tuple[int, ...] = (1, 7)) -> Iterator[Operands]:
    for T in lengths:
        for layer in range(network.config.n_layers):
            yield operands_of_layer(network, some_ids(T, 300, seed=T), layer)


def near(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, atol=2e-5)


def test_the_fused_product_is_the_module_s(network: Network) -> None:
    for found in each(network):
        attention = found.attention
        with torch.no_grad():
            qkv = attention.W_QKV(torch.from_numpy(found.x)).numpy()
        near(found.qkv, qkv)
        near(found.x @ found.W_QKV + attention.W_QKV.bias.detach().numpy(), qkv)


def test_the_columns_of_a_head_make_its_q_k_and_v(network: Network) -> None:
    for found in each(network, (5,)):
        d_h = found.attention.d_head
        for h in range(found.attention.n_heads):
            g = found.kv_head(h)
            for part, rows in zip(PARTS, (found.q[h], found.k[g], found.v[g]), strict=True):
                start = found.block(part, h) * d_h
                near(found.qkv[:, start : start + d_h], rows)


def test_products_add_up_to_the_score_and_rows_of_v_to_z(network: Network) -> None:
    for found in each(network):
        T = len(found.x)
        for h in range(found.attention.n_heads):
            for query, key in {(T - 1, 0), (T - 1, T - 1), (0, T - 1)}:
                score = found.score(h, query, key)
                near(score.products, score.q * score.k)
                near(score.sums[-1], score.products.sum())
                near(score.total * score.scale, score.score)
                near(score.score, found.scores[h, query, key])
                assert abs(score.products[score.largest]) == np.abs(score.products).max()
            row = found.weighted_values(h, T - 1)
            near(row.weights @ row.values, row.z)
            near(row.weights.sum(), 1)
            first = found.weighted_values(h, 0)
            assert first.n_seen == 1
            assert not first.weights[1:].any()


def test_contributions_and_bias_add_up_to_the_output_and_the_stream(network: Network) -> None:
    for found in each(network):
        for position in range(len(found.x)):
            added = found.contributions(position)
            near(added.by_head.sum(axis=0) + added.bias, added.output)
            near(added.before + added.output, added.after)
            near(added.lengths, np.sqrt((added.by_head**2).sum(axis=1)))


@pytest.mark.parametrize("text", ["The king gave the princess a golden ring", "a", "漢字 and <b>&"])
def test_the_operands_of_a_text_are_those_of_its_trace(bundled: Model, text: str) -> None:
    trace = bundled.trace(text)
    ids = torch.tensor([trace.token_ids])
    with torch.inference_mode():
        streams = list(bundled.network.residuals(ids))
    for layer in range(trace.n_layers):
        found = operands_of_layer(bundled.network, ids, layer)
        np.testing.assert_allclose(found.q, trace.q[layer], atol=1e-4)
        np.testing.assert_allclose(found.pattern, trace.patterns(layer), atol=1e-5)
        np.testing.assert_allclose(found.stream, streams[layer][0], atol=1e-6)
        block = bundled.network.blocks[layer]
        resid_mid = torch.from_numpy(found.stream + found.output)
        with torch.inference_mode():
            after = resid_mid + block.mlp_output(streams[layer][0], resid_mid)
        np.testing.assert_allclose(after, streams[layer + 1][0], atol=1e-3)


def test_a_layer_without_a_mask_sees_all_keys() -> None:
    attention, x = random_layer(24, 4, 2, 5)
    attention.causal = False
    found = operands_of(attention, x, x)
    assert found.weighted_values(1, 0).n_seen == 5
    assert found.n_masked == 0
    near(found.weighted_values(1, 0).weights @ found.v[1], found.z[1, 0])
    np.testing.assert_array_equal(found.stream, x[0])
