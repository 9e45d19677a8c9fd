"""Token labels on an axis."""

from mha_viz.figures.base import Style
from mha_viz.figures.labels import apart, label_width, token_ticks
from mha_viz.figures.theme import LIGHT, NORMAL


def test_equal_tokens_keep_a_place_each_and_wide_ones_have_room() -> None:
    ticks = token_ticks(["the"] * 5)
    assert ticks == {"tickvals": [0, 1, 2, 3, 4], "ticktext": ["the"] * 5}
    style = Style(LIGHT, NORMAL)
    assert label_width(["漢字"], style) > label_width(["ab"], style)
    assert len(token_ticks(["a"] * 500)["ticktext"]) <= 44


def test_labels_are_moved_apart_within_their_bounds_and_keep_their_order() -> None:
    assert apart([1.0, 5.0], 1.0, 0.0, 9.0) == [1.0, 5.0]
    assert apart([2.0, 2.0, 2.1], 1.0, 0.0, 9.0) == [2.0, 3.0, 4.0]
    assert apart([9.0, 8.9, 0.0], 1.0, 0.0, 9.0) == [9.0, 8.0, 0.0]
    assert apart([], 1.0, 0.0, 9.0) == []
