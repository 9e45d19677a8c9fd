"""The figures of the Head page: what they show is what they were given, and no more than it."""

import json

import numpy as np
import plotly.graph_objects as go
import pytest

from mha_viz.analysis import dot_product
from mha_viz.figures.cells import BAR, cell_map
from mha_viz.figures.dot_product import dot_product_figure
from mha_viz.figures.head_view import MAX_LINES, head_view
from mha_viz.figures.logit_effects import logit_effects
from mha_viz.figures.pooling import pool_by_magnitude
from mha_viz.figures.softmax_steps import SoftmaxRow, softmax_steps
from mha_viz.figures.theme import DARK, LIGHT, THEMES
from mha_viz.figures.window import Window
from mha_viz.trace import max_pool

EVIL = "<b>&$x$"
SAFE = "&lt;b&gt;&amp;&#36;x&#36;"


def values(T: int, *, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((T, T)).astype(np.float32)


def lower(matrix: np.ndarray) -> np.ndarray:
    return np.where(np.tri(len(matrix), dtype=bool), matrix, np.float32(np.nan))


# --- cells ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", [1, 2, 3, 7, 30])
def test_a_pooled_cell_is_the_number_of_the_largest_size(block: int) -> None:
    matrix = lower(values(20))
    pooled = pool_by_magnitude(matrix, block)
    for (i, j), value in np.ndenumerate(pooled):
        part = matrix[i * block : (i + 1) * block, j * block : (j + 1) * block].ravel()
        part = part[~np.isnan(part)]
        if len(part):
            assert value == part[np.abs(part).argmax()]
        else:
            assert np.isnan(value)


def test_weights_are_pooled_as_everywhere_else() -> None:
    matrix = np.abs(values(30))
    np.testing.assert_array_equal(pool_by_magnitude(matrix, 4), max_pool(matrix, 4))


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


def test_a_window_is_cut_out_at_its_place() -> None:
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


# --- the dot product ------------------------------------------------------------------------------


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


# --- the ladder -----------------------------------------------------------------------------------

RUNGS = [
    SoftmaxRow(EVIL, 7, 9.91, 1.0, 0.8349),
    SoftmaxRow("The", 0, 7.357, 0.0779, 0.065),
    SoftmaxRow("ring", 12, -3.0, 0.0, 0.0, masked=True),
    SoftmaxRow("9 more", None, None, 0.0099, 0.00001),
    SoftmaxRow("sum", None, None, 1.1978, 1.0),
]


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_every_rung_says_its_three_numbers(theme) -> None:
    figure = softmax_steps(RUNGS, theme, selected=7)
    said = [note.text for note in figure.layout.annotations]
    for text in ["<b>9.910</b>", "<b>0.8349</b>", "7.357", "0.0779", "−3.000 → −∞", "1.1978"]:
        assert text in said
    assert "&lt;0.0001" in said  # a weight that is there is not said to be nought
    labels = figure.layout.yaxis.ticktext
    assert SAFE in labels[0]
    assert theme.query in labels[0]
    assert theme.query not in labels[1]
    assert EVIL not in json.dumps(figure.to_plotly_json(), default=str)


def test_a_press_anywhere_on_a_rung_tells_its_key() -> None:
    figure = softmax_steps(RUNGS, LIGHT, selected=7)
    targets = [bars for bars in figure.data if bars.customdata is not None]
    assert len(targets) == 3
    for bars in targets:
        assert [key for (key,) in bars.customdata] == [7, 0, 12, None, None]
        assert len(set(bars.x)) == 1
        assert bars.hoverinfo != "skip"


def test_bars_of_weights_reach_across_the_column_at_one() -> None:
    figure = softmax_steps(RUNGS, LIGHT, selected=0)
    assert figure.layout.xaxis2.range == figure.layout.xaxis3.range == (0, 1)
    assert figure.layout.xaxis.range == (-3.0, 9.91)
    assert max(figure.data[2].x) == 1.0  # the sum of exponentials is longer than the column
    assert list(figure.data[4].x) == [r.weight for r in RUNGS]


# --- what a head says -----------------------------------------------------------------------------


def test_raised_tokens_are_orange_and_lowered_ones_blue() -> None:
    figure = logit_effects([EVIL, "b"], [1.5, -0.25], LIGHT)
    bars = figure.data[0]
    assert list(bars.text) == ["+1.500", "−0.250"]
    assert list(bars.marker.color) == [LIGHT.diverging[7], LIGHT.diverging[2]]
    assert figure.layout.yaxis.ticktext[0] == SAFE
    assert isinstance(figure, go.Figure)


# --- lines ----------------------------------------------------------------------------------------


def ends(figure: go.Figure, *, upright: bool) -> list[tuple[str, float, float, float]]:
    """(head, from, to, weight) of each line of the figure."""
    found = []
    for trace in figure.data[:-1]:
        along, across = (trace.y, trace.x) if upright else (trace.x, trace.y)
        assert np.array_equal(across[0::3], np.zeros(len(across) // 3))
        assert np.array_equal(across[1::3], np.ones(len(across) // 3))
        assert np.isnan(across[2::3]).all()
        for i, j, w in zip(along[0::3], along[1::3], trace.customdata[0::3], strict=True):
            found.append((trace.name, float(i), float(j), float(w)))
    return sorted(found)


@pytest.mark.parametrize("upright", [True, False])
def test_a_line_leads_from_the_token_that_looks_to_the_one_looked_at(upright: bool) -> None:
    pattern = np.array([[1, 0, 0], [0.75, 0.25, 0], [0.125, 0.5, 0.375]], np.float32)
    found = dot_product.lines(pattern, most=2)
    figure = head_view([("L0 H0", found)], ["a", "<b>", "c"], LIGHT, upright=upright)
    assert ends(figure, upright=upright) == sorted(
        [("L0 H0", 0, 0, 1), ("L0 H0", 1, 0, 0.75), ("L0 H0", 1, 1, 0.25), ("L0 H0", 2, 1, 0.5),
         ("L0 H0", 2, 2, 0.375)]
    )  # fmt: skip
    sides = ("yaxis", "yaxis2") if upright else ("xaxis", "xaxis2")
    assert [list(figure.layout[side].ticktext) for side in sides] == [["a", "&lt;b&gt;", "c"]] * 2
    strong = {float(t.customdata[0]): t.opacity for t in figure.data[:-1]}
    assert strong[1.0] > strong[0.5] > strong[0.25]


def test_lines_of_several_heads_lie_side_by_side_and_a_head_without_any_is_named() -> None:
    eye = dot_product.lines(np.eye(4, dtype=np.float32), most=1)
    none = dot_product.lines(np.full((4, 4), 0.25, np.float32), threshold=0.9)
    assert len(none) == 0
    figure = head_view([("L0 H0", eye), ("L1 H2", eye), ("L2 H1", none)], list("abcd"), LIGHT)
    named = [trace.name for trace in figure.data if trace.showlegend is not False]
    assert named == ["L0 H0", "L1 H2", "L2 H1"]
    assert figure.data[0].y[0] < figure.data[1].y[0]
    assert len({trace.line.color for trace in figure.data[:3]}) == 3


def test_of_too_many_lines_the_strongest_are_drawn() -> None:
    rng = np.random.default_rng(0)
    pattern = np.tril(rng.random((600, 600), dtype=np.float32))
    found = dot_product.lines(pattern, most=8)
    assert len(found) > MAX_LINES
    figure = head_view([("L0 H0", found)], ["x"] * 600, LIGHT)
    weights = [line[3] for line in ends(figure, upright=True)]
    assert len(weights) == MAX_LINES
    assert min(weights) == pytest.approx(float(found.weights[MAX_LINES - 1]))
    assert len(figure.layout.yaxis.tickvals) <= 44
    assert len(figure.to_json()) < 500_000
