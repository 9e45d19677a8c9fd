"""The part of a pattern that is drawn stays within the text."""

import pytest

from mha_viz.figures.window import Window, clamp_window


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        ((0, 50, 0, 50), None),
        ((-5, 99, -1, 60), None),
        ((10, 20, 5, 15), Window(10, 20, 5, 15)),
        ((20, 20, 5, 15), None),
        ((30, 10, 5, 15), None),
    ],
)
def test_a_window_is_clamped_to_the_text(edges: tuple[int, ...], expected: Window | None) -> None:
    assert clamp_window(edges, 50) == expected
