"""Several rows of weights against their mean: favourites, spread and the changed output."""

import numpy as np
import pytest
import torch

from mha_viz.attention import MultiHeadAttention
from mha_viz.lessons.opinions import Opinions, opinions
from mha_viz.lessons.walkthrough import random_layer
from mha_viz.model import Model


def of_rows(*rows: list[float]) -> Opinions:
    """Heads that have these rows for their last query, and look at themselves before."""
    T = len(rows[0])
    pattern = np.stack([np.eye(T, dtype=np.float32)] * len(rows))
    pattern[:, -1] = rows
    output = np.eye(T, dtype=np.float32)
    return Opinions(pattern, output, 2 * output)


def test_each_favourite_is_named_once_with_its_strongest_head() -> None:
    found = of_rows([0.6, 0.3, 0.1], [0.9, 0.1, 0.0], [0.2, 0.7, 0.1])
    named = [(head, key) for head, key, _ in found.favourites(2)]
    assert named == [(1, 0), (2, 1)]
    np.testing.assert_allclose([weight for *_, weight in found.favourites(2)], [0.9, 0.7])


def test_heads_are_most_divided_where_their_rows_differ() -> None:
    found = of_rows([1.0, 0.0, 0.0], [0.0, 1.0, 0.0])
    assert found.most_divided == 2
    np.testing.assert_allclose(found.spread, [0, 0, 0.5])
    np.testing.assert_allclose(found.mean[2], [0.5, 0.5, 0])
    assert found.change(0) == pytest.approx(1)


def test_the_mean_row_in_every_head_is_computed_head_by_head(bundled: Model) -> None:
    ids = torch.tensor([bundled.trace("The king gave a ring").token_ids])
    attention = bundled.network.blocks[2].attn
    x = bundled.network.attention_input(ids, 2)
    found = opinions(attention, x)
    record = attention.explicit(x)
    with torch.inference_mode():
        z = [record.pattern[0].mean(dim=0) @ record.v[0, h] for h in range(attention.n_heads)]
        wanted = attention.W_O(torch.cat(z, dim=-1))
    np.testing.assert_allclose(found.output_of_mean, wanted, atol=1e-4)
    np.testing.assert_allclose(found.output, attention(x)[0].detach(), atol=1e-4)
    assert found.change(ids.shape[1] - 1) > 0.05


def test_with_one_head_the_mean_changes_nothing() -> None:
    found = opinions(*random_layer(8, 1, 1, 4))
    np.testing.assert_allclose(found.output_of_mean, found.output, atol=1e-6)
    assert max(found.spread) == 0


def test_shared_keys_and_values_are_read_by_every_head_of_a_group() -> None:
    attention = MultiHeadAttention(16, 4, n_kv_heads=2).requires_grad_(False)
    found = opinions(attention, torch.randn(1, 5, 16))
    assert found.pattern.shape == (4, 5, 5)
    assert found.output_of_mean.shape == (5, 16)
