"""The pictures of a training hold its numbers, and nothing of a text may be markup."""

import math

import numpy as np
import plotly.graph_objects as go
import pytest

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


def triangles(n_heads: int, T: int = 8) -> np.ndarray:
    rng = np.random.default_rng(n_heads)
    weights = np.tril(rng.random((n_heads, T, T))).astype(np.float32)
    return weights / weights.sum(axis=-1, keepdims=True)


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


@pytest.mark.parametrize("counts", [(1, 4), (1, 1), (8, 32), (32, 2)])
def test_every_head_is_drawn_once_with_its_weights(counts: tuple[int, int]) -> None:
    models = [(f"{n} heads", triangles(n)) for n in counts]
    figure = pattern_mosaic(models, "Good mor", LIGHT)
    z = np.asarray(figure.data[0].z)
    drawn = np.sort(z[~np.isnan(z)])
    visible = np.tril(np.ones((8, 8), dtype=bool))
    expected = np.sort(np.sqrt(np.concatenate([p[:, visible].ravel() for _, p in models])))
    np.testing.assert_allclose(drawn, expected, rtol=0, atol=1e-7)
    texts = [text for row in figure.data[0].text for text in row if text]
    assert len(texts) == len(drawn)
    assert sum(text.startswith("H0: ") for text in texts) == 2 * 36


def test_a_cell_tells_its_head_its_characters_and_its_weight() -> None:
    pattern = triangles(2)
    figure = pattern_mosaic([("2 heads", pattern)], "Good mor", LIGHT)
    z, text = np.asarray(figure.data[0].z), figure.data[0].text
    told = f"H1: from r (7) to · (4): {pattern[1, 7, 4]:.3f}"
    (at,) = [(r, c) for r, row in enumerate(text) for c, cell in enumerate(row) if cell == told]
    assert z[at] == pytest.approx(math.sqrt(pattern[1, 7, 4]), abs=1e-7)


@pytest.mark.parametrize("sample", ["<b>$x$</b", "\n\t 🙂\0é'"])
def test_characters_are_never_markup(sample: str) -> None:
    figure = pattern_mosaic([("<i>", triangles(1, len(sample)))], sample, LIGHT)
    shown = "".join(figure.layout.xaxis.ticktext) + "".join(map("".join, figure.data[0].text))
    assert "<" not in shown
    assert "$" not in shown
    assert figure.layout.annotations[0].text.endswith("&lt;i&gt;")


def test_the_largest_pictures_stay_small() -> None:
    patterns = pattern_mosaic([("a", triangles(32)), ("b", triangles(32))], "Good mor", LIGHT)
    assert len(patterns.to_json()) < 300_000
    steps = np.arange(201, dtype=np.float32)
    losses = np.random.default_rng(0).random((5, 201)).astype(np.float32)
    curves = [LossCurve(name, steps, losses, losses) for name in "ab"]
    figure = loss_curves(curves, EVEN, 50_000, LIGHT)
    assert len(figure.to_json()) < 60_000
