"""The list of bugs: bars and diamonds hold the losses, and a click names the bug."""

import math

import pytest

from mha_viz.figures.bug_list import BugLoss, bug_list
from mha_viz.figures.theme import DARK, LIGHT, Theme

BUGS = (
    BugLoss("no transpose", 8.0, 8.5),
    BugLoss("no scale", 4.8, 4.805),
    BugLoss("no mask", 1.5, 5.5),
    BugLoss("no W_O", math.nan),
)


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_bars_are_the_losses_read_whole_and_diamonds_those_that_differ(theme: Theme) -> None:
    figure = bug_list(BUGS, 4.5, 8.3, theme, selected="no scale")
    bars, line, diamonds, rows = figure.data
    assert list(bars.x)[:4] == [4.5, 8.0, 4.8, 1.5]
    assert math.isnan(bars.x[4])
    assert list(diamonds.x) == [8.5, 5.5]
    assert list(diamonds.y) == [1, 3]
    assert list(line.x) == [8.0, 8.5, None, 1.5, 5.5, None]
    assert [bug for _, bug, _ in rows.customdata] == [bug.name for bug in BUGS]


def test_the_frame_is_around_the_selected_row_and_lines_mark_both_losses() -> None:
    figure = bug_list(BUGS, 4.5, 8.3, LIGHT, selected="no mask")
    frame, right, uniform = figure.layout.shapes
    assert frame.y0 < 3 < frame.y1
    assert (right.x0, uniform.x0) == (4.5, 8.3)
    texts = [note.text for note in figure.layout.annotations]
    assert "right 4.500" in texts
    assert "uniform guess 8.300" in texts


def test_changes_have_signs_and_a_bug_without_a_loss_says_why() -> None:
    figure = bug_list(BUGS, 4.5, 8.3, LIGHT, selected="no mask")
    texts = [note.text for note in figure.layout.annotations]
    assert {"+3.50", "+0.30", "−3.00", "an error"} <= set(texts)
    assert "this model cannot run with it" in figure.data[-1].customdata[3][2]


def test_without_diamonds_there_is_no_line_to_one() -> None:
    assert len(bug_list(BUGS[1:2], 4.5, 8.3, LIGHT, selected="no scale").data) == 2
