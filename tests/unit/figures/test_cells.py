"""Small heatmaps: colours, windows and pooling."""

import numpy as np
from support.markup import lower, values

from mha_viz.figures.cells import BAR, cell_map
from mha_viz.figures.theme import DARK, LIGHT
from mha_viz.figures.window import Window


def test_signed_colours_have_their_middle_at_zero() -> None:
    figure = cell_map(values(5), list("abcde"), LIGHT, colours="signed", top=3.0)
    heatmap = figure.data[0]
    assert (heatmap.zmin, heatmap.zmax) == (-3, 3)
    np.testing.assert_array_equal(heatmap.z, values(5))
    middle = dict(heatmap.colorscale)[0.5]
    assert middle == LIGHT.midpoint
    assert list(heatmap.colorbar.ticktext) == ["−3", "0", "3"]


def test_root_and_log_colours_keep_the_value_for_the_hover() -> None:
    weights = np.array([[1.0, np.nan], [0.25, 0.01]], dtype=np.float32)
    root = cell_map(weights, ["a", "b"], LIGHT, colours="root", top=1.0).data[0]
    np.testing.assert_allclose(root.z, np.sqrt(weights), atol=1e-6)
    log = cell_map(weights, ["a", "b"], LIGHT, colours="log", top=1.0).data[0]
    np.testing.assert_allclose(log.z, 1 + np.log10(weights) / 4, atol=1e-6)
    for heatmap in (root, log):
        np.testing.assert_array_equal(heatmap.customdata, weights)
        assert "customdata" in heatmap.hovertemplate
    tiny = cell_map(weights * 1e-9, ["a", "b"], LIGHT, colours="log", top=1.0).data[0]
    assert np.nanmax(tiny.z) == 0


def test_a_window_shows_its_part_of_the_pattern() -> None:
    tokens = [str(i) for i in range(12)]
    window = Window(4, 10, 2, 7)
    figure = cell_map(values(12), tokens, LIGHT, colours="signed", top=1.0, window=window)
    heatmap = figure.data[0]
    np.testing.assert_array_equal(heatmap.z, values(12)[4:10, 2:7])
    assert (heatmap.x0, heatmap.y0) == (2, 4)
    assert figure.layout.xaxis.range == (1.5, 6.5)
    assert figure.layout.yaxis.range == (9.5, 3.5)
    assert figure.layout.xaxis.ticktext[0] == "2"


def test_long_texts_are_pooled_into_a_small_figure_with_few_labels() -> None:
    T = 1024
    figure = cell_map(np.abs(lower(values(T))), ["word"] * T, LIGHT, colours="root", top=5.0)
    assert figure.data[0].z.shape == (256, 256)
    assert "the largest of 4 × 4" in figure.data[0].hovertemplate
    assert len(figure.to_json()) < 1_500_000
    assert len(figure.layout.xaxis.tickvals) <= 20
    assert figure.layout.margin.b == BAR


def test_zeros_alone_can_be_drawn() -> None:
    figure = cell_map(np.zeros((2, 2), np.float32), ["a", "b"], DARK, colours="root", top=0.0)
    assert np.isfinite(figure.data[0].z).all()
