"""x @ W_QKV: a cell says the number there, and rings are where the columns of the head are."""

import numpy as np
import pytest

from mha_viz.figures.projection import projection_figure
from mha_viz.figures.theme import LIGHT

D_H = 4


@pytest.mark.parametrize(("heads", "G"), [((0, 1, 2, 3), 4), ((0, 2, 3, 5), 2), ((3,), 1)])
def test_cells_hold_the_numbers_and_rings_surround_the_columns_of_the_head(
    heads: tuple[int, ...], G: int
) -> None:
    random, T, C = np.random.default_rng(0), 5, 6
    H = len(heads)
    x, W = random.standard_normal((T, C)), random.standard_normal((C, (H + 2 * G) * D_H))
    selected, query = H - 1, 3
    figure = projection_figure(
        x.astype(np.float32),
        W.astype(np.float32),
        (x @ W).astype(np.float32),
        ["a"] * T,
        LIGHT,
        heads=heads,
        n_kv_heads=G,
        query=query,
        selected=selected,
    )
    for trace, matrix in zip(figure.data, (x, W, x @ W), strict=True):
        numbers = trace.customdata[~np.isnan(trace.z)]
        assert numbers.shape == (matrix.size, 3), "each number has a cell, because they are few"
        for value, row, column in numbers:
            assert value == pytest.approx(matrix[int(row), int(column)], abs=1e-5)
    product = figure.data[2]
    orange = [shape for shape in figure.layout.shapes if shape.line.color == LIGHT.query]
    grey = [shape for shape in figure.layout.shapes if shape.line.color == LIGHT.muted]
    group = selected * G // H
    blocks = {"q": selected, "k": H + group, "v": H + G + group}
    for rings, names in ((orange, "q"), (grey, "kv")):
        in_product = [ring for ring in rings if ring.y0 > 100 and ring.x0 > 200]
        for ring, name in zip(in_product, names, strict=True):
            inside = (product.x[:-1] >= ring.x0 - 1e-6) & (product.x[1:] <= ring.x1 + 1e-6)
            columns = product.customdata[0, inside, 2]
            assert columns.tolist() == list(range(blocks[name] * D_H, (blocks[name] + 1) * D_H))
            assert product.y[query] == pytest.approx(ring.y0)
