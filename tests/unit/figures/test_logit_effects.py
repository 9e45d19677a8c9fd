"""Raised and lowered tokens have their colours."""

import plotly.graph_objects as go
from support.markup import EVIL, SAFE

from mha_viz.figures.logit_effects import logit_effects
from mha_viz.figures.theme import LIGHT


def test_raised_tokens_are_orange_and_lowered_ones_blue() -> None:
    figure = logit_effects([EVIL, "b"], [1.5, -0.25], LIGHT)
    bars = figure.data[0]
    assert list(bars.text) == ["+1.500", "−0.250"]
    assert list(bars.marker.color) == [LIGHT.diverging[7], LIGHT.diverging[2]]
    assert figure.layout.yaxis.ticktext[0] == SAFE
    assert isinstance(figure, go.Figure)
