"""Loss curves of a training hold its numbers."""

import math

import numpy as np
import plotly.graph_objects as go
import pytest
from support.training_figures import triangles

from mha_viz.figures.loss_curves import LossCurve, loss_curves
from mha_viz.figures.pattern_mosaic import pattern_mosaic
from mha_viz.figures.theme import DARK, LIGHT, Theme

STEPS = np.array([0, 50, 100], dtype=np.float32)


EVEN = math.log(65)


def curve(label: str, *seeds: list[float]) -> LossCurve:
    validation = np.array(seeds, dtype=np.float32)
    return LossCurve(label, STEPS, validation - 0.1, validation)


def labels(figure: go.Figure) -> list[str]:
    return [note.text for note in figure.layout.annotations]


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_a_line_ends_with_its_name_and_its_loss(theme: Theme) -> None:
    one, four = curve("1 head", [4.2, 2.9, 2.4]), curve("4 heads", [4.2, 2.8, 2.3])
    figure = loss_curves([one, four], EVEN, 100, theme)
    assert labels(figure)[0] == "uniform guessing: ln 65 = 4.174"
    assert labels(figure)[1].endswith("1 head <b>2.400</b>")
    assert labels(figure)[2].endswith("4 heads <b>2.300</b>")
    train, validation = figure.data[0], figure.data[1]
    np.testing.assert_array_equal(validation.y, one.validation[0])
    np.testing.assert_array_equal(train.y, one.train[0])
    above, below = figure.layout.annotations[1:]
    assert (above.yanchor, below.yanchor) == ("bottom", "top")
    low, high = figure.layout.yaxis.range
    assert low < 2.2
    assert high > 4.2


def test_what_has_not_come_yet_is_not_drawn() -> None:
    nan = math.nan
    figure = loss_curves(
        [curve("a", [4.2, 2.9, nan]), curve("b", [nan, nan, nan])], EVEN, 100, LIGHT
    )
    assert len(labels(figure)) == 2
    assert labels(figure)[1].endswith("a <b>2.900</b>")
    assert figure.layout.annotations[1].x == 50
    empty = loss_curves([curve("a", [nan, nan, nan])], EVEN, 100, LIGHT)
    assert labels(empty) == ["uniform guessing: ln 65 = 4.174"]
    assert tuple(empty.layout.xaxis.range) == (0, 100)


def test_several_seeds_have_a_mean_and_a_band() -> None:
    found = curve("a", [4.0, 3.0, 2.0], [4.2, 3.2, 2.6])
    figure = loss_curves([found], EVEN, 100, LIGHT)
    lowest, highest, first, second, _, mean = (line.y for line in figure.data)
    np.testing.assert_allclose(lowest, [4.0, 3.0, 2.0], atol=1e-6)
    np.testing.assert_allclose(highest, [4.2, 3.2, 2.6], atol=1e-6)
    np.testing.assert_allclose(mean, [4.1, 3.1, 2.3], atol=1e-6)
    np.testing.assert_array_equal([first, second], found.validation)
    assert figure.data[1].fill == "tonexty"
    assert found.last == (100, pytest.approx(2.3, abs=1e-6))


def test_the_largest_pictures_stay_small() -> None:
    patterns = pattern_mosaic([("a", triangles(32)), ("b", triangles(32))], "Good mor", LIGHT)
    assert len(patterns.to_json()) < 300_000
    steps = np.arange(201, dtype=np.float32)
    losses = np.random.default_rng(0).random((5, 201)).astype(np.float32)
    curves = [LossCurve(name, steps, losses, losses) for name in "ab"]
    figure = loss_curves(curves, EVEN, 50_000, LIGHT)
    assert len(figure.to_json()) < 60_000
