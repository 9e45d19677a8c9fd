"""Times of a layer's parts: each is measured at each length, for shared keys too."""

import pytest

from mha_viz.errors import ShapeError
from mha_viz.lessons.kernel_times import part_times


@pytest.mark.parametrize("n_kv_heads", [None, 2, 1])
def test_each_part_is_timed_at_each_length(n_kv_heads: int | None) -> None:
    times = list(part_times(24, 4, [8, 16], n_kv_heads=n_kv_heads, repeats=2))
    assert [each.T for each in times] == [8, 16]
    for each in times:
        for spread in (each.projections, each.explicit, each.fused):
            assert 0 < spread.shortest <= spread.median <= spread.longest


def test_heads_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ShapeError):
        list(part_times(24, 5, [8]))
