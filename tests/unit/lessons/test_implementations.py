"""Seven forms of one layer: all equal the module, whatever its scale, shared keys or heads."""

import pytest
import torch

from mha_viz.attention import MultiHeadAttention
from mha_viz.lessons.grouped_query import grouped
from mha_viz.lessons.implementations import (
    IMPLEMENTATIONS,
    compare,
    fused,
    parameters_seen,
    toy_shapes,
    with_weights,
)
from mha_viz.lessons.module_run import NAMES
from mha_viz.lessons.plain_layer import plain_layer
from mha_viz.lessons.walkthrough import random_layer
from mha_viz.model import Model


@pytest.mark.parametrize("sizes", [(1, 1, 8, 1), (2, 7, 24, 4), (1, 40, 48, 6)])
@pytest.mark.parametrize("scale", [None, 1.0])
def test_every_implementation_equals_the_module(sizes: tuple[int, ...], scale: float | None):
    B, T, C, H = sizes
    attention, x = random_layer(C, H, B, T)
    attention.scale = scale or attention.scale
    comparisons = compare(attention, x)
    assert len(comparisons) == 7
    assert max(c.difference for c in comparisons) < 1e-5


def test_every_implementation_runs_a_layer_with_shared_keys_or_pruned_heads():
    attention, x = random_layer(24, 4, 2, 5)
    torch.manual_seed(0)
    for other in (grouped(attention, 2), MultiHeadAttention(24, 3, d_head=6)):
        comparisons = compare(other, x)
        assert len(comparisons) == 7
        assert max(c.difference for c in comparisons) < 1e-5


def test_every_implementation_runs_a_layer_of_the_bundled_model(bundled: Model):
    x = bundled.network.attention_input(torch.tensor([[5, 9, 300, 5, 9]]), 1)
    comparisons = compare(bundled.network.blocks[1].attn, x)
    assert max(c.difference for c in comparisons) < 1e-4


def test_a_wrong_implementation_shows(monkeypatch: pytest.MonkeyPatch):
    attention, x = random_layer(24, 4, 1, 6)
    monkeypatch.setattr("mha_viz.lessons.forms.np.tri", lambda T, dtype: torch.ones(T, T).numpy())
    differences = {c.implementation.title: c.difference for c in compare(attention, x)}
    assert differences["NumPy"] > 1e-3
    assert differences["tiles"] < 1e-5


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS, ids=lambda one: one.title)
def test_each_step_is_an_expression_of_the_code_or_has_a_reason_why_not(implementation):
    for step in NAMES:
        expression = implementation.expressions.get(step)
        if expression:
            first, *_ = implementation.code.span(expression)
            assert first <= len(implementation.code.text.splitlines())
            assert step not in implementation.missing
        else:
            assert implementation.missing[step].endswith(".")


def test_each_line_of_each_form_says_the_shapes_that_it_gave():
    attention, x = random_layer(24, 4, 1, 6)
    for comparison in compare(attention, x):
        lines = comparison.implementation.code.text.splitlines()
        returned = [n for n, line in enumerate(lines, start=1) if "return " in line]
        if comparison.implementation.title == "fused":
            returned.pop()  # the sum with the residual stream is not part of the layer
        assert all(n in comparison.shapes for n in returned)
        assert (
            "[1, 4, 6, 6]" in comparison.shapes.values()
            or "ModuleList" in lines[19]
            or (comparison.implementation.title == "torch")
        )


def test_a_python_list_hides_the_heads_from_parameters():
    seen, hidden = parameters_seen(24, 4)
    W_O = 24 * 24 + 24
    assert seen == 4 * W_O
    assert hidden == W_O


def test_modules_take_the_weights_that_they_are_given():
    attention, x = random_layer(24, 4, 1, 6)
    layer = plain_layer(attention)
    module = fused(layer)
    assert module.W_O.weight.data_ptr() == layer.W_O.data_ptr()
    assert not module.training
    linear = with_weights(lambda: torch.nn.Linear(24, 24), weight=layer.W_O, bias=layer.b_O)
    with torch.inference_mode():
        assert torch.allclose(linear(x), x @ layer.W_O.T + layer.b_O, atol=1e-6)


def test_the_toy_batch_has_one_shape_whatever_the_number_of_heads():
    assert toy_shapes(5, 6, 3, 18, [1, 2, 9, 18]) == [[5, 6, 18]] * 4
