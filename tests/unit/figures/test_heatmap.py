"""The heatmap of one head holds the weights, exact or pooled, and draws no future."""

import numpy as np
import plotly.graph_objects as go
import pytest
from support.patterns import random_pattern

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
