"""Figures for notebooks, in one call."""

import numpy as np
import pytest

from mha_viz.errors import HeadNotFound
from mha_viz.figures.notebook import all_heads, head_view, one_head
from mha_viz.model import Model


def test_a_notebook_gets_the_figures_of_the_app_in_one_call(bundled: Model) -> None:
    trace = bundled.trace("The king gave the queen a ring.")
    figure = one_head(trace, 3, 4, size=500)
    np.testing.assert_allclose(
        np.nan_to_num(np.asarray(figure.data[0].customdata, dtype=float)),
        trace.pattern(3, 4),
        atol=1e-7,
    )
    assert list(figure.layout.xaxis.ticktext) == list(trace.tokens)
    assert (figure.layout.width, figure.layout.title.text) == (500, "bundled L3 H4")
    assert len(all_heads(trace).layout.images) == 1
    lines = head_view(trace, [(3, 4), (0, 1)], size=500)
    assert {line.name for line in lines.data[:-1]} == {"L3 H4", "L0 H1"}
    for draw in (lambda: one_head(trace, 9, 0), lambda: head_view(trace, [(9, 0)])):
        with pytest.raises(HeadNotFound):
            draw()
