"""FlashAttention's tiles and running values."""

import numpy as np
import pytest

from mha_viz.figures.theme import DARK, LIGHT, STAGE, Theme
from mha_viz.figures.tiles import running_figure, tiles_figure
from mha_viz.lessons.flash import tile_ranges


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_a_tile_at_work_shows_its_weights_and_nothing_else_does(theme: Theme) -> None:
    tiles = list(tile_ranges(10, 10, block=4))
    queries, keys = tiles[3]
    weights = np.full((len(queries), len(keys)), 0.25, dtype=np.float32)
    weights[0, -1] = np.nan
    figure = tiles_figure(tiles, 3, weights, ["a"] * 10, theme)
    drawn = np.array(figure.data[0].z)
    inside = drawn[queries.start : queries.stop, keys.start : keys.stop]
    np.testing.assert_allclose(inside, np.sqrt(weights), rtol=0, atol=1e-7)
    assert np.isfinite(drawn).sum() == weights.size - 1
    done = [shape for shape in figure.layout.shapes if shape.fillcolor]
    assert len(done) == 3
    assert len(figure.layout.shapes) == len(tiles)  # none for those beyond the diagonal
    mark = figure.layout.shapes[-1]
    assert (mark.x0, mark.y0) == (keys.start - 0.5, queries.start - 0.5)
    assert mark.line.color == theme.query


def test_the_running_values_are_drawn_row_by_row() -> None:
    m, total = np.array([1.0, -2.0], np.float32), np.array([1.0, 3.0], np.float32)
    figure = running_figure(
        ["a", "<b>"], {"m": (m, (-3, 3)), "l": (total, (0, 4))}, LIGHT, sizes=STAGE
    )
    assert [list(trace.x) for trace in figure.data] == [[1, -2], [1, 3]]
    assert [trace.xaxis for trace in figure.data] == ["x", "x2"]
    assert list(figure.layout.xaxis2.range) == [0, 4]
    assert figure.layout.xaxis.domain[1] < figure.layout.xaxis2.domain[0]
    assert "<" not in figure.layout.yaxis.ticktext[1]
