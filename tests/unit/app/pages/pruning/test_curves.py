"""The results of curves in words."""

import pytest

from mha_viz.app.pages.pruning.curves import n_within
from mha_viz.pruning import Point


def run(*losses: float) -> list[Point]:
    """A curve whose loss after removing n heads is losses[n]."""
    return [Point(n, (), loss, 1.0) for n, loss in enumerate(losses)]


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ([run(1, 1.005, 2)], "1 head"),
        ([run(1, 1.001, 1.002, 9)], "2 heads"),
        ([run(1, 9), run(1, 1.001, 1.002, 1.003)], "0 to 3 heads"),
        ([run(1, 9)], "0 heads"),
    ],
)
def test_several_runs_have_a_range(runs: list[list[Point]], expected: str) -> None:
    assert n_within(runs, 0.01) == expected
