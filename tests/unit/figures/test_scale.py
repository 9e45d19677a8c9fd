"""Colour scales keep the order of weights."""

import numpy as np

from mha_viz.figures import scale


def test_scales_keep_order_and_their_ends() -> None:
    weights = np.linspace(0, 1, 64, dtype=np.float32)[None, :].repeat(64, axis=0)
    for name in scale.SCALES:
        at = scale.position(weights, name)
        assert (np.diff(at, axis=1) >= 0).all()
        assert at.min() >= 0
        assert at.max() <= 1
        positions, labels, _ = scale.ticks(name)
        assert len(positions) == len(labels)
        assert 0 <= min(positions) < max(positions) <= 1


def test_relative_to_uniform_1_has_the_same_colour_in_every_row() -> None:
    rows = np.arange(50)
    uniform = np.tril(np.ones((50, 50), dtype=np.float32)) / (rows + 1)[:, None]
    at = scale.position(uniform.astype(np.float32), "share")
    np.testing.assert_allclose(at[np.tril_indices(50)], 3 / 7, atol=1e-6)
