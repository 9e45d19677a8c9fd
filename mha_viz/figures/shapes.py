"""The colours of heads: one hue each, in every picture that shows several.

A larger magnitude is more opaque.
"""

import numpy as np

from mha_viz.figures.theme import Theme, rgb

FAINTEST = 0.1  # opacity of a zero, so that small values stay visible
TINTS = (1.0, 0.6, 0.35)  # heads beyond the eighth repeat the colours, paler


def head_colours(theme: Theme, n_heads: int) -> list[str]:
    """A colour for each head: eight, then the same in paler tints."""
    page = np.array(rgb(theme.page))
    colours = []
    for head in range(n_heads):
        base = np.array(rgb(theme.categorical[head % len(theme.categorical)]))
        tint = TINTS[min(head // len(theme.categorical), len(TINTS) - 1)]
        mixed = np.rint(base * tint + page * (1 - tint)).astype(int)
        colours.append("#{:02X}{:02X}{:02X}".format(*mixed))
    return colours
