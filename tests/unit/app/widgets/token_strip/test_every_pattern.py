"""The patterns of all heads, as the browser keeps them."""

import numpy as np
from support.node import evaluate

from mha_viz.app.widgets.token_strip.every_pattern import codes

T = 120


def decoded(pattern: np.ndarray) -> list[tuple[float, str]]:
    """Each weight of the lower triangle in the browser, as a number and as it is written."""
    code = """import { Pattern, weightText } from "#app/widgets/token_strip/pattern.js";
    const found = Pattern.quick(Uint8Array.from(data.codes), 0, data.length);
    result = found && Array.from(found.weights, (weight) => [weight, weightText(weight)]);"""
    given = {"codes": codes(pattern).tolist(), "length": len(pattern)}
    return evaluate(code, given)


def written(weight: float) -> str:
    return "1" if weight >= 0.995 else f"{weight:.2f}"


def test_two_digits_of_every_weight_are_right_and_small_weights_have_their_shade() -> None:
    random = np.random.default_rng(3)
    rows = random.dirichlet(np.full(T, 0.05), size=T)
    pattern = np.tril(rows).astype(np.float32)
    pattern[0, 0] = 1.0
    weights = pattern[np.tril_indices(T)].astype(np.float64)
    found = decoded(pattern)
    shown = weights >= 0.02  # smaller ones are never written
    assert shown.sum() > 200
    for weight, (_, text) in zip(weights[shown], np.array(found, object)[shown], strict=True):
        assert text == written(weight)
    root = np.sqrt([weight for weight, _ in found])
    np.testing.assert_allclose(root, np.sqrt(weights), atol=0.01)


def test_a_pruned_head_has_no_pattern() -> None:
    assert decoded(np.full((3, 3), np.nan, np.float32)) is None
