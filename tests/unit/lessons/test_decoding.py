"""Decoding speeds: every G is run as often as asked, in turn."""

import pytest

from mha_viz.errors import ShapeError
from mha_viz.lessons.decoding import decoding_speeds
from mha_viz.model import Model


def test_each_g_is_timed_in_turn(tiny: Model) -> None:
    found = list(decoding_speeds(tiny.network, [4, 1], [1, 2, 3], n_new=2, repeats=2))
    assert [G for G, _ in found] == [4, 1, 4, 1]
    assert all(speed > 0 for _, speed in found)


def test_what_does_not_fit_is_refused(tiny: Model) -> None:
    with pytest.raises(ShapeError):
        list(decoding_speeds(tiny.network, [3], [1], n_new=1, repeats=1))
    limit = tiny.config.n_positions
    with pytest.raises(ShapeError):
        list(decoding_speeds(tiny.network, [4], [1] * limit, n_new=2, repeats=1))
