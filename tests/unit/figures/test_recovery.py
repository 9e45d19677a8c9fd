"""Curves of recovery: the losses as given, and names that stand apart."""

from itertools import pairwise

import pytest

from mha_viz.figures.recovery import APART, RecoveryCurve, recovery_figure
from mha_viz.figures.theme import DARK, LIGHT, Theme

CURVES = [
    RecoveryCurve("G = 6, control", (0, 25, 100), (4.5, 4.6, 4.7), control=True),
    RecoveryCurve("G = 3", (0, 25, 100), (5.4, 5.0, 4.75)),
    RecoveryCurve("G = 2", (0, 25, 100), (6.7, 5.5, 4.8)),
    RecoveryCurve("this run", (0, 25), (6.7, 5.6), live=True),
]


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_each_line_has_its_losses_over_the_root_of_the_step(theme: Theme) -> None:
    figure = recovery_figure(CURVES, theme, selected="G = 2")
    for line, curve in zip(figure.data, CURVES, strict=True):
        assert [x**2 for x in line.x] == pytest.approx(curve.steps)
        assert list(line.y) == list(curve.losses)
    assert figure.data[0].line.dash == "dash"
    assert [line.line.color == theme.query for line in figure.data] == [False, False, True, False]
    assert figure.data[-1].marker.symbol == "diamond-open"


def test_names_stand_apart_and_show_the_last_loss() -> None:
    figure = recovery_figure(CURVES, LIGHT)
    low, high = figure.layout.yaxis.range
    notes = figure.layout.annotations
    assert [note.text for note in notes] == [
        "G = 6, control  4.70", "G = 3  4.75", "G = 2  4.80"
    ]  # fmt: skip
    places = sorted(note.y for note in notes)
    assert min(b - a for a, b in pairwise(places)) >= APART * (high - low) - 1e-9


def test_a_run_that_has_just_begun_is_drawn() -> None:
    (point,) = recovery_figure([RecoveryCurve("now", (0,), (5.0,), live=True)], LIGHT).data
    assert list(point.y) == [5.0]
