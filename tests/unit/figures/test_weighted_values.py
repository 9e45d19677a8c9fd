"""w @ v: every weight stands beside its row of v, hidden rows are empty, and z is the sum."""

import numpy as np
import pytest

from mha_viz.figures.theme import LIGHT
from mha_viz.figures.weighted_values import weighted_values_figure, weighted_values_height


@pytest.mark.parametrize(("T", "n_seen"), [(1, 1), (6, 4), (6, 6), (90, 40)])
def test_the_numbers_of_the_picture_add_up(T: int, n_seen: int) -> None:
    random = np.random.default_rng(0)
    weights, v = random.random(T).astype(np.float32), random.standard_normal((T, 5))
    weights[n_seen:] = 0
    z = weights @ v
    figure = weighted_values_figure(
        weights, v.astype(np.float32), z.astype(np.float32), ["a"] * T, LIGHT,
        n_seen=n_seen, query=n_seen - 1,
    )  # fmt: skip
    w_cells, v_cells, z_cells = figure.data[:3]
    shown = w_cells.customdata[:n_seen, 0] @ v_cells.customdata[:n_seen, :, 0]
    np.testing.assert_allclose(shown, z_cells.customdata[0, :, 0], atol=1e-4)
    assert np.isnan(v_cells.z[n_seen:]).all()
    assert np.isnan(w_cells.z[n_seen:]).all()
    np.testing.assert_allclose(w_cells.y, v_cells.y)
    said = [note.text for note in figure.layout.annotations]
    assert said.count("hidden") == (T - n_seen if T < 20 else 0)
    assert weighted_values_height(T) < 420
