"""Candidates beside what sampling left of them."""

from mha_viz.figures.candidates import candidates_figure
from mha_viz.figures.theme import LIGHT


def test_a_filtered_candidate_is_marked() -> None:
    figure = candidates_figure(["a", "b"], [0.6, 0.4], [1.0, 0.0], 0, LIGHT)
    assert list(figure.data[1].text) == ["1.00", "filtered out"]
    assert len(candidates_figure(["a"], [0.6], None, 0, LIGHT).data) == 1
