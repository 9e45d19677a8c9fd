"""One pass: the next token, the logit lens and the losses, as their own functions compute them."""

import numpy as np
import pytest

from mha_viz import pruning
from mha_viz.analysis.outcome import outcome
from mha_viz.analysis.predictions import join, lens, predict
from mha_viz.errors import ShapeError
from mha_viz.model import Model

TEXT = "The king gave a ring.\nThe king gave a"


def test_all_numbers_are_those_of_the_predictions(bundled: Model) -> None:
    ids = bundled.trace(TEXT).token_ids
    found, position = outcome(bundled, ids, 3), 3
    every = join(list(predict(bundled, ids, 1)))
    np.testing.assert_allclose(found.losses, every.losses[:-1], atol=1e-4)
    assert found.probabilities.argmax() == every.ids[position, 0]
    assert found.probabilities.max() == pytest.approx(every.probabilities[position, 0], abs=1e-5)
    for layer, row in enumerate(lens(bundled, ids, range(position, position + 1), 1)):
        assert found.lens_ids[layer] == row.ids[0, 0]
        assert found.lens_probabilities[layer] == pytest.approx(row.probabilities[0, 0], abs=1e-5)


def test_without_heads_it_is_that_of_the_ablated_model(bundled: Model) -> None:
    ids = bundled.trace(TEXT).token_ids
    heads = [pruning.Head(3, 0), pruning.Head(0, 1)]
    gate = pruning.gate_without(bundled.config, heads).numpy()
    without = pruning.Pass.of(bundled, ids).without(heads)
    np.testing.assert_allclose(
        outcome(bundled, ids, head_gate=gate).losses, without.losses(), atol=1e-4
    )


def test_one_token_has_a_prediction_and_no_loss(bundled: Model) -> None:
    layers: list[int] = []
    found = outcome(bundled, [7], on_layer=layers.append)
    assert found.losses.shape == (0,)
    assert found.probabilities.sum() == pytest.approx(1, abs=1e-4)
    assert layers == [1, 2, 3, 4]
    with pytest.raises(ShapeError, match="positions 0 to 0"):
        outcome(bundled, [7], 1)
