"""Two bars for each head: their values, their signs and a head without a value."""

import math

from mha_viz.figures.paired_effects import height, paired_effects
from mha_viz.figures.theme import LIGHT


def test_each_head_has_both_numbers_and_a_missing_one_no_bar() -> None:
    figure = paired_effects(["L3 H0", "L3 H3"], [2.1, -0.3], [0.1, math.nan], LIGHT)
    before, after = figure.data
    assert list(before.x) == [2.1, -0.3]
    assert before.text == ("+2.1", "−0.3")
    assert after.text == ("+0.1", "")
    low, high = figure.layout.xaxis.range
    assert low < -0.3
    assert high > 2.1


def test_equal_zeros_still_have_an_axis() -> None:
    low, high = paired_effects(["a"], [0.0], [0.0], LIGHT).layout.xaxis.range
    assert low < high


def test_more_heads_are_higher() -> None:
    assert height(5) > height(4)
