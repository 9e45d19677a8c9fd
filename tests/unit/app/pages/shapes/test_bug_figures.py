"""The data of the Bugs part's figures, and the note about the last row."""

import numpy as np
import pytest

from mha_viz.app.pages.shapes.bug_figures import draw_trained, most_of_last, pair_data
from mha_viz.figures.theme import LIGHT, NORMAL
from mha_viz.lessons.bug_training import stored_losses
from mha_viz.lessons.bugs import BUGS

RIGHT = np.array([[1, np.nan], [0.25, 0.75]], dtype=np.float32)
WRONG = np.array([[0.5, 0.5], [0.9, 0.1]], dtype=np.float32)


def test_both_patterns_have_a_row_for_each_weight() -> None:
    data = pair_data(RIGHT, WRONG, ["a", "b"])
    header, rows = data.table()
    assert header == ["query", "query token", "key", "key token", "right", "wrong"]
    assert rows[1] == [0, "a", 1, "b", 0.0, 0.5]
    assert len(rows) == 4
    np.testing.assert_array_equal(data.arrays["wrong"], WRONG)


def test_the_last_row_is_named_by_token_or_by_row() -> None:
    assert most_of_last(RIGHT, ["a", "b"]) == "most on b: 0.75"
    assert most_of_last(WRONG, ()) == "most on row 0: 0.90"


@pytest.mark.parametrize("bug", BUGS)
def test_a_model_that_reads_ahead_has_a_line_for_each_way_of_reading(bug: str) -> None:
    curves = stored_losses()
    figure, data = draw_trained(curves, bug, LIGHT, NORMAL)
    assert len(figure.data) == (3 if BUGS[bug].reads_ahead else 2)
    np.testing.assert_array_equal(figure.data[1].y, curves[bug].whole)
    assert list(data.arrays["wrong as it writes"]) == list(curves[bug].writing)
