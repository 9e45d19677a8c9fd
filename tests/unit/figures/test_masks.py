"""Masks, and patterns under them."""

import numpy as np
from support.variants import MARKUP

from mha_viz.figures.masks import mask_figure, masked_pattern
from mha_viz.figures.theme import DARK, LIGHT


def test_a_mask_draws_what_may_be_seen() -> None:
    mask = np.array([[True, False, True], [False, False, False]])
    figure = mask_figure(mask, ["a", "b"], MARKUP, LIGHT)
    np.testing.assert_array_equal(np.isfinite(np.array(figure.data[0].z)), mask)
    assert len(figure.layout.xaxis.tickvals) == 3
    assert len(figure.layout.yaxis.tickvals) == 2
    assert not any("<" in text for text in figure.layout.xaxis.ticktext)


def test_a_pattern_is_blank_where_it_is_masked_and_zero_is_not() -> None:
    mask = np.array([[True, True], [False, True]])
    pattern = np.array([[1.0, 0.0], [0.0, 1.0]], dtype=np.float32)
    figure = masked_pattern(pattern, mask, ["a", "b"], ["a", "b"], DARK)
    weights = np.array(figure.data[0].customdata)
    np.testing.assert_array_equal(np.isnan(weights), ~mask)
    assert weights[0, 1] == 0
