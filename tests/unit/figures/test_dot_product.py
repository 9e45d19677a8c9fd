"""The bars of a dot product add up to it."""

import numpy as np
import pytest

from mha_viz.figures.dot_product import dot_product_figure
from mha_viz.figures.theme import LIGHT


@pytest.mark.parametrize("order", [range(4), [2, 0, 3, 1]])
def test_the_bars_lead_from_nothing_to_the_dot_product(order) -> None:
    q, k = np.array([1.0, -2.0, 0.5, 3.0]), np.array([2.0, 1.0, -4.0, 0.0])
    figure = dot_product_figure(q, k, list(order), LIGHT)
    strips, products, bars, line = figure.data
    at = list(order)
    np.testing.assert_allclose(strips.z[:2], [q[at], k[at]])
    np.testing.assert_allclose(products.z[2], (q * k)[at])
    assert strips.zmax == -strips.zmin == 4
    assert products.zmax == 2
    np.testing.assert_allclose(bars.y, (q * k)[at])
    base = np.asarray(bars.base, dtype=float)
    np.testing.assert_allclose(base + bars.y, np.cumsum((q * k)[at]))
    np.testing.assert_allclose(base[1:], np.asarray(line.y[1:-2], dtype=float))
    assert line.y[-1] == pytest.approx(float(q @ k))
    assert "q · k = −2.000" in figure.layout.annotations[0].text
    assert strips.text[1][0] == f"k, element {at[0]}"


def test_a_product_of_zeros_can_be_drawn() -> None:
    figure = dot_product_figure(np.zeros(2), np.zeros(2), [0, 1], LIGHT)
    assert "q · k = 0.000" in figure.layout.annotations[0].text
