"""From scores to weights: each row shows its three numbers."""

import json

import pytest
from support.markup import EVIL, SAFE

from mha_viz.figures.softmax_steps import SoftmaxRow, softmax_steps
from mha_viz.figures.theme import LIGHT, THEMES

RUNGS = [
    SoftmaxRow(EVIL, 7, 9.91, 1.0, 0.8349),
    SoftmaxRow("The", 0, 7.357, 0.0779, 0.065),
    SoftmaxRow("ring", 12, -3.0, 0.0, 0.0, masked=True),
    SoftmaxRow("9 more", None, None, 0.0099, 0.00001),
    SoftmaxRow("sum", None, None, 1.1978, 1.0),
]


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_every_bar_shows_its_three_numbers(theme) -> None:
    figure = softmax_steps(RUNGS, theme, selected=7)
    said = [note.text for note in figure.layout.annotations]
    for text in ["<b>9.910</b>", "<b>0.8349</b>", "7.357", "0.0779", "−3.000 → −∞", "1.1978"]:
        assert text in said
    assert "&lt;0.0001" in said  # a small weight is not shown as zero
    labels = figure.layout.yaxis.ticktext
    assert SAFE in labels[0]
    assert theme.query in labels[0]
    assert theme.query not in labels[1]
    assert EVIL not in json.dumps(figure.to_plotly_json(), default=str)


def test_a_click_anywhere_on_a_bar_selects_its_key() -> None:
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
