"""One of two compared patterns: its numbers, the framed row, and which tokens are named."""

import numpy as np

from mha_viz.figures.compared_pattern import NARROW, ROOM, compared_pattern
from mha_viz.figures.theme import LIGHT
from mha_viz.figures.window import MAX_CELLS

N = 9
PATTERN = (np.tri(N) / np.arange(1, N + 1)[:, None]).astype(np.float32)
TOKENS = list("abcdefghi")


def test_weights_are_coloured_by_their_square_root_and_later_keys_are_blank() -> None:
    (cells,) = compared_pattern(PATTERN, TOKENS, LIGHT, title="before").data
    below = np.tri(N, dtype=bool)
    np.testing.assert_allclose(cells.z[below], np.sqrt(PATTERN[below]))
    assert np.isnan(cells.z[~below]).all()
    assert (cells.zmin, cells.zmax) == (0, 1)


def test_differences_run_from_minus_top_to_top() -> None:
    (cells,) = compared_pattern(PATTERN - 0.3, TOKENS, LIGHT, title="difference", top=0.7).data
    assert (cells.zmin, cells.zmax) == (-0.7, 0.7)
    np.testing.assert_allclose(cells.z[-1], PATTERN[-1] - 0.3, atol=1e-6)


def test_the_row_of_the_query_is_framed_and_changed_tokens_are_bold() -> None:
    figure = compared_pattern(PATTERN, TOKENS, LIGHT, title="", query=8, changed=[3])
    (row,) = figure.layout.shapes
    assert (row.y0, row.y1) == (7.5, 8.5)
    assert figure.layout.xaxis.ticktext[3] == "<b>d</b>"
    assert "i" in figure.layout.xaxis.ticktext[8] != "i"


def test_rows_without_labels_take_no_room() -> None:
    figure = compared_pattern(PATTERN, TOKENS, LIGHT, title="", labelled=False)
    assert figure.layout.margin.l == NARROW
    assert not figure.layout.yaxis.showticklabels


def test_a_long_text_is_pooled_and_names_few_tokens_but_always_those_that_matter() -> None:
    T = MAX_CELLS + 20
    pattern = np.tri(T, dtype=np.float32) / np.arange(1, T + 1, dtype=np.float32)[:, None]
    figure = compared_pattern(
        pattern, ["a"] * T, LIGHT, title="", query=T - 1, changed=[101], most_labels=10
    )
    assert max(np.shape(figure.data[0].z)) <= MAX_CELLS
    assert {101, T - 1} <= set(figure.layout.xaxis.tickvals)
    assert len(figure.layout.xaxis.tickvals) <= 12


def test_a_short_text_has_no_colour_bar_in_its_triangle() -> None:
    figure = compared_pattern(
        PATTERN[: ROOM - 1, : ROOM - 1], TOKENS[: ROOM - 1], LIGHT, title="before"
    )
    assert figure.layout.annotations[0].text == "<b>before</b>"
    assert figure.data[0].showscale is False


def test_colour_follows_the_scale_and_the_sink_can_be_dimmed() -> None:
    (cells,) = compared_pattern(PATTERN, TOKENS, LIGHT, title="", scale="weight").data
    np.testing.assert_allclose(cells.z[-1], PATTERN[-1])
    (even,) = compared_pattern(PATTERN, TOKENS, LIGHT, title="", scale="share").data
    np.testing.assert_allclose(even.customdata[-1], 1, atol=1e-6)  # the pattern is uniform
    dimmed = compared_pattern(PATTERN, TOKENS, LIGHT, title="", dim_sink=True, query=2)
    assert len(dimmed.layout.shapes) == 2
