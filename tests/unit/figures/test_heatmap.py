"""The heatmap of one head holds the weights, exact or pooled, and leaves masked cells blank."""

import numpy as np
import plotly.graph_objects as go
import pytest
from support.patterns import random_pattern

from mha_viz.figures import scale
from mha_viz.figures.heatmap import head_heatmap
from mha_viz.figures.labels import MAX_TICKS
from mha_viz.figures.text import escape
from mha_viz.figures.theme import LIGHT
from mha_viz.figures.window import MAX_CELLS, Window, whole


def trace_of(figure: go.Figure) -> dict[str, np.ndarray]:
    heatmap = figure.data[0]
    return {"z": np.asarray(heatmap.z), "weights": np.asarray(heatmap.customdata)}


@pytest.mark.parametrize("T", [1, 2, 17, 64])
def test_a_heatmap_holds_the_weights_and_draws_no_future(T: int) -> None:
    pattern = random_pattern(T)
    held = trace_of(head_heatmap(pattern, ["a"] * T, LIGHT))
    future = np.triu(np.ones((T, T), dtype=bool), 1)
    np.testing.assert_array_equal(held["weights"][~future], pattern[~future])
    np.testing.assert_allclose(held["z"][~future], np.sqrt(pattern[~future]), rtol=0, atol=1e-7)
    assert np.isnan(held["z"][future]).all()


def test_equal_tokens_keep_a_row_and_a_column_each() -> None:
    tokens = ["the", "·the", "·the", "·cat", "·the"]
    figure = head_heatmap(random_pattern(5), tokens, LIGHT)
    for axis in (figure.layout.xaxis, figure.layout.yaxis):
        assert axis.type == "linear"
        assert list(axis.tickvals) == [0, 1, 2, 3, 4]
        assert list(axis.ticktext) == tokens


def test_a_label_is_never_markup() -> None:
    tokens = ["<b>x</b>", "<a href='https://e.invalid'>", "&lt;", "$x$", "a&b"]
    figure = head_heatmap(random_pattern(5), tokens, LIGHT)
    shown = "".join(figure.layout.xaxis.ticktext)
    assert "<" not in shown
    assert "$" not in shown
    assert escape("<&>$") == "&lt;&amp;&gt;&#36;"


@pytest.mark.parametrize("T", [257, 600, 1024])
def test_a_long_text_is_pooled_by_its_largest_weight(T: int) -> None:
    pattern = random_pattern(T)
    figure = head_heatmap(pattern, [str(i) for i in range(T)], LIGHT)
    held = trace_of(figure)
    block = whole(T).block
    assert max(held["z"].shape) <= MAX_CELLS
    assert np.nanmax(held["weights"]) == pattern.max()
    assert held["weights"][-1, 0] == pattern[(len(held["z"]) - 1) * block :, :block].max()
    assert len(figure.layout.xaxis.tickvals) <= MAX_TICKS
    assert len(figure.to_json()) < 1_500_000


@pytest.mark.parametrize("name", scale.SCALES)
@pytest.mark.parametrize("window", [None, Window(200, 900, 100, 900)])
def test_a_pooled_cell_has_the_strongest_colour_of_its_pairs(
    name: scale.Scale, window: Window | None
) -> None:
    pattern = random_pattern(1024)
    seen = window or whole(1024)
    tokens = [str(i) for i in range(1024)]
    figure = head_heatmap(pattern, tokens, LIGHT, window=window, scale=name)
    exact = scale.position(pattern, name)[seen.first_query : seen.end_query]
    exact = exact[:, seen.first_key : seen.end_key]
    drawn = trace_of(figure)["z"]
    for row, column in [(0, 0), (1, 0), (9, 3), (80, 61), (len(drawn) - 1, 0)]:
        cell = exact[row * seen.block :, column * seen.block :][: seen.block, : seen.block]
        assert drawn[row, column] == pytest.approx(cell.max(), abs=1e-6)


def test_a_pooled_cell_relative_to_uniform_says_so_on_hover() -> None:
    pattern = random_pattern(600)
    figure = head_heatmap(pattern, ["a"] * 600, LIGHT, scale="share")
    ratios = pattern * np.arange(1, 601)[:, None]
    assert np.asarray(figure.data[0].customdata)[-1, 0] == pytest.approx(ratios[597:, :3].max())
    assert "× uniform" in figure.data[0].hovertemplate


def test_a_window_of_a_long_text_is_exact() -> None:
    pattern = random_pattern(1024)
    tokens = [str(i) for i in range(1024)]
    figure = head_heatmap(pattern, tokens, LIGHT, window=Window(100, 160, 90, 150))
    held = trace_of(figure)
    part = pattern[100:160, 90:150]
    future = np.arange(90, 150)[None, :] > np.arange(100, 160)[:, None]
    np.testing.assert_array_equal(held["weights"][~future], part[~future])
    assert np.isnan(held["z"][future]).all()
    assert figure.data[0].x0 == 90
    assert figure.data[0].y0 == 100


def test_the_numbers_of_the_colour_bar_in_the_corner_are_few_enough_for_a_phone() -> None:
    """0 and .01 would touch there."""
    corner = head_heatmap(random_pattern(17), ["a"] * 17, LIGHT).data[0].colorbar
    assert corner.orientation == "h"
    assert list(corner.ticktext) == ["0", ".05", ".2", ".5", "1"]
    np.testing.assert_allclose(np.square(corner.tickvals), [0, 0.05, 0.2, 0.5, 1])
