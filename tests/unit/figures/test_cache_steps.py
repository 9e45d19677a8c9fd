"""The key/value cache, position by position."""

import pytest
from support.variants import MARKUP

from mha_viz.figures.cache_steps import PER_LINE, State, cache_figure, height
from mha_viz.figures.theme import LIGHT, STAGE


@pytest.mark.parametrize("n", [1, 5, 24, 25, 72])
def test_every_position_has_a_cell_in_both_rows(n: int) -> None:
    made = n - 1
    kept: list[State] = ["read" if i < made - 1 else "computed" for i in range(made)]
    kept = [*kept, "not yet"]
    without: list[State] = [*["computed"] * made, "not yet"]
    figure = cache_figure(["a"] * n, kept, without, LIGHT, generated=made)
    cells = {trace.name: len(trace.x) for trace in figure.data[:3]}
    both = [*kept, *without]
    assert cells == {s: both.count(s) for s in ("computed", "read", "not yet")}
    places = [
        (x, base) for trace in figure.data[:3] for x, base in zip(trace.x, trace.base, strict=True)
    ]
    assert len(set(places)) == 2 * n
    assert max(x for x, _ in places) < PER_LINE
    (mark,) = figure.layout.shapes
    last = figure.data[2]  # the generated position does not exist yet
    assert mark.x0 < last.x[0] < mark.x1
    assert mark.y0 < min(last.base)
    assert height(n) >= 100


def test_a_token_not_generated_yet_has_no_label() -> None:
    states: list[State] = ["computed", "computed", "not yet", "not yet"]
    figure = cache_figure([*MARKUP, "later"], states, states, LIGHT, generated=2, sizes=STAGE)
    names = figure.data[-1]
    assert len(names.text) == 3
    assert "later" not in names.text
    assert not any("<" in text or "$" in text for text in names.text)
    assert list(names.textfont.color) == [LIGHT.ink, LIGHT.ink, LIGHT.query]
    hovers = " ".join(text for trace in figure.data[:3] for text in trace.hovertext)
    assert "<" not in hovers
    assert "later" not in hovers


def test_positions_left_of_the_picture_are_counted() -> None:
    states: list[State] = ["computed", "not yet"]
    figure = cache_figure(["a", "b"], states, states, LIGHT, generated=101, first=100)
    assert "position 100" in figure.data[0].hovertext[0]
