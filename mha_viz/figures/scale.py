"""Maps weights to the colour scale, alike for thumbnails, heatmaps and the token strip."""

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from mha_viz.trace import Array, relative_to_uniform

Scale = Literal["sqrt", "weight", "share"]
SCALES: tuple[Scale, ...] = get_args(Scale)
OCTAVES = (-3.0, 4.0)  # of "share": log2 of weight / uniform weight, clipped
ROOT_TICKS = (0, 0.05, 0.2, 0.5, 1)  # weights on a short colour bar


def position(pattern: Array, scale: Scale, *, first_query: int = 0) -> Array:
    """The position of each weight of `[..., T_q, T_k]` on the colour scale, from 0 to 1.

    Row r of `pattern` is that of the query first_query + r.
    """
    return place(coloured(pattern, scale, first_query=first_query), scale)


def coloured(pattern: Array, scale: Scale, *, first_query: int = 0) -> Array:
    """The numbers that colours show; a block shows its largest number.

    For "sqrt" and "weight" they are the weights; for "share", each weight divided by that of
    uniform attention, 1 / (i + 1) for query i. Row r of `pattern` is the query first_query + r.
    """
    return relative_to_uniform(pattern, first_query) if scale == "share" else pattern


def place(values: Array, scale: Scale) -> Array:
    """The positions of numbers from `coloured` on the colour scale, from 0 to 1.

    "sqrt" is the square root and "weight" the number itself, both the same for every head; "share"
    is in octaves.
    """
    if scale == "weight":
        return values
    if scale == "sqrt":
        root: Array = np.sqrt(values)
        return root
    low, high = map(np.float32, OCTAVES)
    octaves = np.log2(np.maximum(values, 2**low))
    clipped: Array = (np.minimum(octaves, high) - low) / (high - low)
    return clipped.astype(np.float32)


def root_ticks() -> tuple[list[float], list[str]]:
    """Positions and labels of a short colour bar for the square root of a weight."""
    return [weight**0.5 for weight in ROOT_TICKS], [_short(weight) for weight in ROOT_TICKS]


def ticks(scale: Scale) -> tuple[list[float], list[str], str]:
    """Positions, labels and title of a pattern's colour bar."""
    if scale == "share":
        low, high = OCTAVES
        at = [(octave - low) / (high - low) for octave in (-3, -1, 0, 2, 4)]
        return at, ["⅛", "½", "1", "4", "16×"], "weight relative to uniform"
    if scale == "weight":
        return [0, 0.2, 0.5, 1], ["0", ".2", ".5", "1"], "weight"
    weights = [0, 0.01, 0.05, 0.2, 0.5, 1]
    return [w**0.5 for w in weights], [_short(w) for w in weights], "how much it looks (weight)"


def future(T_q: int, T_k: int, *, first_query: int = 0, first_key: int = 0) -> NDArray[np.bool_]:
    """`[T_q, T_k]`: True where the key comes after the query; also holds for square blocks."""
    queries = np.arange(T_q)[:, None] + first_query
    keys = np.arange(T_k)[None, :] + first_key
    return keys > queries


def _short(weight: float) -> str:
    return f"{weight:g}".removeprefix("0") or "0"
