"""The race: all four ways compute the module's output, and a Python list hides parameters."""

import pytest
import torch

from mha_viz.errors import ShapeError
from mha_viz.lessons.grouped_query import grouped
from mha_viz.lessons.race import (
    WAYS,
    Spread,
    four_ways,
    race,
    registered_parameters,
    score_bytes,
)
from mha_viz.lessons.walkthrough import random_layer
from mha_viz.reference import HeadByHead


@pytest.mark.parametrize("n_kv_heads", [1, 2, 4])
def test_every_way_computes_the_output_of_the_module(n_kv_heads: int) -> None:
    attention, x = random_layer(24, 4, 2, 7)
    attention = grouped(attention, n_kv_heads)
    ways = four_ways(attention)
    assert tuple(ways) == WAYS
    expected = attention.explicit(x).out
    for run in ways.values():
        torch.testing.assert_close(run(x), expected, rtol=0, atol=1e-6)


def test_each_way_is_timed_for_each_number_of_heads() -> None:
    timings = list(race(24, 8, [1, 3], repeats=3))
    assert [timing.n_heads for timing in timings] == [1, 3]
    for timing in timings:
        assert tuple(timing.ms) == WAYS
        assert timing.difference < 1e-5
        for spread in timing.ms.values():
            assert 0 < spread.shortest <= spread.median <= spread.longest
    with pytest.raises(ShapeError):
        list(race(24, 8, [5]))


def test_ranges_overlap_when_they_share_a_time() -> None:
    low, high = Spread.of([3.0, 1.0, 2.0]), Spread.of([5.0, 4.0])
    assert (low.shortest, low.median, low.longest) == (1.0, 2.0, 3.0)
    assert not low.overlaps(high)
    assert low.overlaps(Spread.of([3.0, 9.0]))


@pytest.mark.parametrize(("C", "H"), [(24, 4), (192, 6)])
def test_a_python_list_hides_all_parameters_but_those_of_the_output(C: int, H: int) -> None:
    found, hidden = registered_parameters(C, H)
    layer = HeadByHead(C, H)
    assert found == sum(p.numel() for p in layer.parameters())
    assert found - hidden == C * C + C


def test_the_scores_of_all_heads_are_h_times_those_of_one() -> None:
    assert score_bytes(12, 256) == 12 * score_bytes(1, 256) == 12 * 256 * 256 * 4
