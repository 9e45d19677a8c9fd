"""Other tellings of one layer: all of them are the module, whatever its scale and its sharing."""

import pytest
import torch

from mha_viz.errors import ShapeError
from mha_viz.lessons.grouped_query import grouped
from mha_viz.lessons.implementations import race, tellings, toy_shapes
from mha_viz.lessons.walkthrough import random_layer
from mha_viz.model import Model


@pytest.mark.parametrize("sizes", [(1, 1, 8, 1), (2, 7, 24, 4), (1, 40, 48, 6)])
@pytest.mark.parametrize("scale", [None, 1.0])
def test_every_telling_gives_what_the_module_gives(sizes: tuple[int, ...], scale: float | None):
    B, T, C, H = sizes
    attention, x = random_layer(C, H, B, T)
    attention.scale = scale or attention.scale
    found = tellings(attention, x)
    assert len(found) == 6
    assert max(telling.difference for telling in found) < 1e-5
    assert all("def " in telling.code for telling in found)


def test_shared_keys_are_told_as_well():
    attention, x = random_layer(24, 4, 2, 5)
    found = tellings(grouped(attention, 2), x)
    assert max(telling.difference for telling in found) < 1e-5


def test_a_layer_of_the_bundled_model_is_told(bundled: Model):
    x = bundled.network.attention_input(torch.tensor([[5, 9, 300, 5, 9]]), 1)
    found = tellings(bundled.network.blocks[1].attn, x)
    assert max(telling.difference for telling in found) < 1e-4


def test_a_telling_that_is_wrong_shows(monkeypatch: pytest.MonkeyPatch):
    attention, x = random_layer(24, 4, 1, 6)
    monkeypatch.setattr("mha_viz.reference.additive_mask", lambda allowed: 0.0 * allowed)
    found = {telling.title: telling.difference for telling in tellings(attention, x)}
    assert found["NumPy with einsum"] > 1e-3
    assert found["Tile by tile"] < 1e-5


def test_a_race_times_both_ways_on_equal_outputs():
    found = list(race(24, 8, [1, 3], repeats=2))
    assert [heat.n_heads for heat in found] == [1, 3]
    assert all(heat.fused > 0 and heat.listed > 0 for heat in found)
    assert all(heat.difference < 1e-5 for heat in found)
    with pytest.raises(ShapeError):
        list(race(24, 8, [5]))


def test_the_toy_batch_has_one_shape_whatever_the_heads():
    assert toy_shapes(5, 6, 3, 18, [1, 2, 9, 18]) == [[5, 6, 18]] * 4
