"""z @ W_O: the rows of the heads and their lengths are the numbers given."""

import numpy as np
import pytest

from mha_viz.figures.contributions import contributions_figure, contributions_height
from mha_viz.figures.theme import LIGHT


@pytest.mark.parametrize("heads", [(0,), (0, 1, 4), tuple(range(25))])
def test_each_row_holds_its_numbers_and_its_length(heads: tuple[int, ...]) -> None:
    random, H, d_h, C = np.random.default_rng(0), len(heads), 3, 8
    z = random.standard_normal((H, d_h)).astype(np.float32)
    W_O = random.standard_normal((H, d_h, C)).astype(np.float32)
    by_head = np.einsum("hi,hic->hc", z, W_O)
    output, before = by_head.sum(axis=0), random.standard_normal(C).astype(np.float32)
    sums = (output, before, before + output)
    figure = contributions_figure(z, W_O, by_head, sums, LIGHT, heads=heads, selected=H - 1)
    cells = {trace.hovertemplate.partition("[")[0]: trace for trace in figure.data[: 3 * H + 3]}
    for h, head in enumerate(heads):
        for name, values in (
            (f"z of head {head}", z[h : h + 1]),
            (f"W_O of head {head}", W_O[h]),
            (f"head {head}", by_head[h : h + 1]),
        ):
            np.testing.assert_array_equal(cells[name].customdata[..., 0], values)
    for name, values in zip(("output", "stream before", "stream after"), sums, strict=True):
        np.testing.assert_array_equal(cells[name].customdata[0, :, 0], values)
    said = [note.text for note in figure.layout.annotations]
    for row in (*by_head[:-1], *sums):
        assert f"{np.linalg.norm(row):.2f}" in said
    assert any(f">{np.linalg.norm(by_head[-1]):.2f}<" in text for text in said)
    assert contributions_height(H) < 500
