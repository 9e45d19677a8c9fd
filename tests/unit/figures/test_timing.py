"""The chart of times: medians, ranges, and names that never overlap."""

import math
from itertools import pairwise

import pytest

from mha_viz.figures.theme import DARK, LIGHT, Theme
from mha_viz.figures.timing import APART, Timed, timing_chart

HEADS = (1, 2, 4)
WAYS = {
    "list, plain": [Timed(2.0, 1.0, 9.0), Timed(4.0, 3.0, 5.0)],
    "batch, plain": [Timed(2.5, 1.0, 3.0), Timed(4.0, 2.0, 6.0)],
    "list, fused": [Timed(1.5, 1.0, 2.0), Timed(4.1, 4.0, 4.2)],
    "batch, fused": [Timed(1.0, 0.5, 2.0), Timed(3.9, 3.0, 4.0)],
}


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_points_are_medians_and_bars_reach_from_the_shortest_to_the_longest(theme: Theme) -> None:
    figure = timing_chart([1, 4], WAYS, theme, all_heads=HEADS)
    assert [line.name for line in figure.data] == list(WAYS)
    assert len({line.x[0] for line in figure.data}) == len(WAYS)  # no bar covers another
    for line, times in zip(figure.data, WAYS.values(), strict=True):
        assert [round(x) for x in line.x] == [0, 2]
        assert list(line.y) == [run.median for run in times]
        bars = line.error_y
        tops = [y + up for y, up in zip(line.y, bars.array, strict=True)]
        bottoms = [y - down for y, down in zip(line.y, bars.arrayminus, strict=True)]
        assert tops == pytest.approx([run.longest for run in times])
        assert bottoms == pytest.approx([run.shortest for run in times])


def test_names_at_almost_equal_ends_stand_apart_within_the_chart() -> None:
    figure = timing_chart([1, 2], WAYS, LIGHT, all_heads=HEADS)
    low, high = figure.layout.yaxis.range
    places = sorted(note.y for note in figure.layout.annotations)
    assert [note.text for note in figure.layout.annotations] == list(WAYS)
    steps = [b - a for a, b in pairwise(places)]
    assert min(steps) >= APART * (high - low) - 1e-9
    assert low <= places[0]
    assert places[-1] <= high
    assert low < math.log10(0.5)
    assert high > math.log10(9.0)


def test_nothing_measured_yet_is_an_empty_chart() -> None:
    figure = timing_chart([], {way: [] for way in WAYS}, LIGHT, all_heads=HEADS)
    assert not figure.layout.annotations
