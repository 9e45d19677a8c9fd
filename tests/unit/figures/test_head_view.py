"""Lines lead from the token that looks to the token looked at."""

import numpy as np
import plotly.graph_objects as go
import pytest

from mha_viz.analysis import dot_product
from mha_viz.figures.head_view import MAX_LINES, head_view
from mha_viz.figures.theme import LIGHT


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


def test_lines_of_several_heads_are_side_by_side_and_the_legend_names_all() -> None:
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
