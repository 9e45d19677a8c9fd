"""Implementations of one layer: all equal the module, whatever its scale and shared keys."""

import pytest
import torch

from mha_viz.errors import ShapeError
from mha_viz.lessons.grouped_query import grouped
from mha_viz.lessons.implementations import benchmark, compare, toy_shapes
from mha_viz.lessons.walkthrough import random_layer
from mha_viz.model import Model


@pytest.mark.parametrize("sizes", [(1, 1, 8, 1), (2, 7, 24, 4), (1, 40, 48, 6)])
@pytest.mark.parametrize("scale", [None, 1.0])
def test_every_implementation_equals_the_module(sizes: tuple[int, ...], scale: float | None):
    B, T, C, H = sizes
    attention, x = random_layer(C, H, B, T)
    attention.scale = scale or attention.scale
    comparisons = compare(attention, x)
    assert len(comparisons) == 6
    assert max(c.difference for c in comparisons) < 1e-5
    assert all("def " in c.implementation.source for c in comparisons)


def test_every_implementation_runs_a_layer_with_shared_keys():
    attention, x = random_layer(24, 4, 2, 5)
    comparisons = compare(grouped(attention, 2), x)
    assert max(c.difference for c in comparisons) < 1e-5


def test_every_implementation_runs_a_layer_of_the_bundled_model(bundled: Model):
    x = bundled.network.attention_input(torch.tensor([[5, 9, 300, 5, 9]]), 1)
    comparisons = compare(bundled.network.blocks[1].attn, x)
    assert max(c.difference for c in comparisons) < 1e-4


def test_a_wrong_implementation_shows(monkeypatch: pytest.MonkeyPatch):
    attention, x = random_layer(24, 4, 1, 6)
    monkeypatch.setattr("mha_viz.reference.additive_mask", lambda allowed: 0.0 * allowed)
    differences = {c.implementation.title: c.difference for c in compare(attention, x)}
    assert differences["NumPy with einsum"] > 1e-3
    assert differences["In tiles"] < 1e-5


def test_a_benchmark_times_both_versions_on_equal_outputs():
    timings = list(benchmark(24, 8, [1, 3], repeats=2))
    assert [timing.n_heads for timing in timings] == [1, 3]
    assert all(timing.fused_ms > 0 and timing.loop_ms > 0 for timing in timings)
    assert all(timing.difference < 1e-5 for timing in timings)
    with pytest.raises(ShapeError):
        list(benchmark(24, 8, [5]))


def test_the_toy_batch_has_one_shape_whatever_the_number_of_heads():
    assert toy_shapes(5, 6, 3, 18, [1, 2, 9, 18]) == [[5, 6, 18]] * 4
