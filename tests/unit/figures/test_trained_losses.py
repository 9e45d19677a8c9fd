"""Losses during training: a logarithmic axis, and labels at the ends that do not overlap."""

import math
from itertools import pairwise

import pytest

from mha_viz.figures.lines import Line
from mha_viz.figures.theme import LIGHT
from mha_viz.figures.trained_losses import APART, NEAR, TICKS, trained_losses


@pytest.mark.parametrize("ends", [(2.0, 0.9, 23.8), (2.0, 2.001, 1.999), (2.0, 2.0)])
def test_labels_stand_apart_at_the_ends_of_their_lines(ends: tuple[float, ...]) -> None:
    lines = [Line(f"line {i}", [4.0, end], "#123456") for i, end in enumerate(ends)]
    figure = trained_losses([0, 100], lines, LIGHT)
    low, high = figure.layout.yaxis.range
    places = sorted(note.y for note in figure.layout.annotations)
    least = APART * (high - low)
    assert all(b - a >= least * 0.999 for a, b in pairwise(places))
    for note, line, end in zip(figure.layout.annotations, figure.data, ends, strict=True):
        assert list(line.y) == [4.0, end]
        assert f"{end:.3f}" in note.text
        assert low < math.log10(end) < high


def test_close_losses_have_closer_ticks() -> None:
    near = trained_losses([0, 1], [Line("a", [4.0, 2.0], "#123456")], LIGHT)
    far = trained_losses([0, 1], [Line("a", [4.0, 0.2], "#123456")], LIGHT)
    assert list(near.layout.yaxis.tickvals) == list(NEAR)
    assert list(far.layout.yaxis.tickvals) == list(TICKS)
