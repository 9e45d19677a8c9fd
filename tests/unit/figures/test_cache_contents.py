"""The contents of a cache: who reads which cells, what is new, and what is empty."""

import numpy as np
import pytest
from support.variants import MARKUP

from mha_viz.figures.cache_contents import CacheContents, Group, contents_figure, height
from mha_viz.figures.theme import DARK, LIGHT, STAGE, Theme

GROUPS = [Group(0, [0, 1, 2]), Group(1, [3, 4, 5])]
WEIGHTS = np.array([0.5, 0.3, 0.2, 0.0, 0.0], dtype=np.float32)


def contents(n_written: int, n_new: int = 1, first: int = 0) -> CacheContents:
    return CacheContents(["a", "b", "c", "later", "later"], first, n_written, n_new, WEIGHTS)


@pytest.mark.parametrize("theme", [LIGHT, DARK])
@pytest.mark.parametrize("n_written", [1, 3, 5])
def test_every_written_position_has_a_key_and_a_value_in_each_group(
    n_written: int, theme: Theme
) -> None:
    keys, values, others, empty = contents_figure(contents(n_written), GROUPS, 4, theme).data
    assert len(keys.x) == len(values.x) == n_written
    assert len(others.x) == 2 * n_written  # the keys and values of the group that is not read
    assert len(empty.x) == 4 * (5 - n_written)
    assert all("group 1" in text for text in keys.hovertext)
    assert all("group 0" in text for text in others.hovertext)
    shown = [".50", ".30", ".20", "", ""][:n_written]
    assert list(keys.text) == shown
    assert not any(values.text)
    hovers = [text.rpartition(" ")[2] for text in keys.hovertext]
    assert [float(text) for text in hovers] == pytest.approx(WEIGHTS[:n_written], abs=5e-4)


@pytest.mark.parametrize(("n_written", "n_new", "first"), [(3, 1, 0), (3, 3, 0), (13, 1, 10)])
def test_the_cells_that_a_step_writes_are_ringed_in_every_group(
    n_written: int, n_new: int, first: int
) -> None:
    figure = contents_figure(contents(n_written, n_new, first), GROUPS, 4, LIGHT)
    rings = figure.layout.shapes
    assert len(rings) == len(GROUPS)
    last = n_written - first - 1
    for ring in rings:
        assert (ring.x0, ring.x1) == (last - n_new + 0.5, last + 0.5)


def test_empty_cells_are_named_and_their_tokens_are_not_shown() -> None:
    figure = contents_figure(contents(3), GROUPS, 4, LIGHT, sizes=STAGE)
    notes = [note.text for note in figure.layout.annotations]
    assert "not written yet" in notes
    assert "later" not in str(figure.to_dict())
    full = contents_figure(contents(5), GROUPS, 4, LIGHT)
    assert "not written yet" not in [note.text for note in full.layout.annotations]


def test_a_group_names_its_query_heads_and_the_selected_one_is_marked() -> None:
    many = [Group(0, list(range(12)))]
    figure = contents_figure(contents(3), many, 7, LIGHT)
    text = figure.layout.annotations[0].text
    assert "q0" in text
    assert "q11" in text
    assert LIGHT.query in text.split("q7")[0]


def test_a_token_is_no_markup() -> None:
    tokens = [*MARKUP, *["x"] * 5][:5]
    given = CacheContents(tokens, 0, 5, 1, WEIGHTS)
    figure = contents_figure(given, GROUPS, 0, LIGHT)
    assert not any("<" in text for text in figure.layout.xaxis.ticktext)


def test_more_groups_are_higher() -> None:
    assert height(1) < height(2) < height(6)
