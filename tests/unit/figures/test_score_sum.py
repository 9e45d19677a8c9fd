"""The picture of a score: products, their sum, and the cell of the pair among all scores."""

import numpy as np
import pytest

from mha_viz.figures.score_sum import HEIGHT, score_sum_figure, scores_figure
from mha_viz.figures.theme import LIGHT


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("d_h", [1, 5, 64])
def test_bars_and_line_are_the_products_and_their_sum(seed: int, d_h: int) -> None:
    q, k = np.random.default_rng(seed).standard_normal((2, d_h)).astype(np.float32)
    total = float((q * k).sum())
    figure = score_sum_figure(q, k, ("a", "b"), LIGHT, scale=d_h**-0.5, score=total * d_h**-0.5)
    strips, bars, steps = figure.data[:2], figure.data[2], figure.data[3]
    for strip, values in zip(strips, (q, k), strict=True):
        np.testing.assert_array_equal(strip.z[0], values)
    numbers = np.array(bars.customdata)
    np.testing.assert_allclose(numbers[:, 3], q * k, atol=1e-6)
    np.testing.assert_allclose(numbers[:, 4], np.cumsum(q * k), atol=1e-5)
    heights = np.array(bars.y)  # pixels down, so that positive products rise
    np.testing.assert_allclose(heights / (np.abs(heights).max() or 1),
                               -(q * k) / np.abs(q * k).max(), atol=1e-5)  # fmt: skip
    y = np.array(steps.y)
    assert y.min() > 0
    assert y.max() < HEIGHT
    rise = (y[0] - y[-1]) * np.ptp([0.0, *np.cumsum(q * k)]) / np.ptp(y)
    assert rise == pytest.approx(total, abs=1e-4)
    said = figure.layout.annotations[1].text.replace("−", "-")
    assert f"<b>{total:.2f}</b>" in said
    assert f"÷ √{d_h}" in said
    (ring,) = [shape for shape in figure.layout.shapes if shape.line.color == LIGHT.query]
    assert (ring.x0 + ring.x1) / 2 == np.abs(q * k).argmax()


def test_another_scale_is_not_called_a_division_by_the_root() -> None:
    q = np.ones(4, np.float32)
    figure = score_sum_figure(q, q, ("a", "b"), LIGHT, scale=0.25, score=1.0)
    assert "× 0.25" in figure.layout.annotations[1].text


@pytest.mark.parametrize("T", [1, 8, 300])
def test_the_cell_of_the_pair_is_ringed_and_both_tokens_are_named(T: int) -> None:
    scores = np.random.default_rng(0).standard_normal((T, T)).astype(np.float32)
    tokens = [f"t{n}" for n in range(T)]
    query, key = T - 1, T // 2
    figure = scores_figure(scores, tokens, LIGHT, query=query, key=key)
    ring = figure.layout.shapes[1]
    assert ring.x0 <= key <= ring.x1
    assert ring.y0 <= query <= ring.y1
    for axis, at in ((figure.layout.xaxis, key), (figure.layout.yaxis, query)):
        assert f'<b><span style="color:{LIGHT.query}">t{at}</span></b>' in axis.ticktext
        assert len(axis.tickvals) == len(axis.ticktext) <= 21
    if T < 256:
        np.testing.assert_array_equal(figure.data[0].z, scores)
