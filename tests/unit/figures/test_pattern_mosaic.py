"""The patterns of a training, one triangle per head."""

import math

import numpy as np
import pytest
from support.training_figures import triangles

from mha_viz.figures.pattern_mosaic import pattern_mosaic
from mha_viz.figures.theme import LIGHT


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


def test_hovering_a_cell_shows_its_head_characters_and_weight() -> None:
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
