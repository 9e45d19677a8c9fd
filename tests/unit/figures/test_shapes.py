"""Each head has a colour of its own."""

import numpy as np

from mha_viz.figures.shapes import head_colours
from mha_viz.figures.theme import LIGHT, rgb


def test_the_ninth_head_has_the_colour_of_the_first_but_paler() -> None:
    first, ninth, page = (
        np.array(rgb(colour)) for colour in (*head_colours(LIGHT, 9)[::8], LIGHT.page)
    )
    np.testing.assert_allclose(ninth, first * 0.6 + page * 0.4, atol=0.5)
    assert len(set(head_colours(LIGHT, 24))) == 24
