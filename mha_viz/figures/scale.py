"""From a weight to its place on the colour scale: one mapping for thumbnail, heatmap and strip."""

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from mha_viz.trace import Array

Scale = Literal["sqrt", "weight", "share"]
SCALES: tuple[Scale, ...] = get_args(Scale)
OCTAVES = (-3.0, 4.0)  # of "share": log2 of weight / uniform weight, clipped
ROOT_TICKS = (0, 0.05, 0.2, 0.5, 1)  # weights on a short colour bar


def position(pattern: Array, scale: Scale, *, first_query: int = 0, block: int = 1) -> Array:
    """The place of each weight of `[..., T_q, T_k]` on the colour scale, from 0 to 1.

    "sqrt" is the square root, "weight" the weight itself; both are the same for every head.
    "share" compares the weight with uniform attention, 1 / (i + 1) for query i, in octaves. Row r
    of `pattern` stands for the queries from first_query + r * block on.
    """
    if scale == "weight":
        return pattern
    if scale == "sqrt":
        root: Array = np.sqrt(pattern)
        return root
    low, high = map(np.float32, OCTAVES)
    queries = np.arange(pattern.shape[-2], dtype=np.float32) * block + first_query
    relative = np.maximum(pattern * (queries + 1)[:, None], 2**low)
    clipped: Array = (np.minimum(np.log2(relative), high) - low) / (high - low)
    return clipped.astype(np.float32)


def root_ticks() -> tuple[list[float], list[str]]:
    """Places and labels of a short colour bar for the square root of a weight."""
    return [weight**0.5 for weight in ROOT_TICKS], [_short(weight) for weight in ROOT_TICKS]


def ticks(scale: Scale) -> tuple[list[float], list[str], str]:
    """Places, labels and title of the colour bar of a pattern."""
    if scale == "share":
        low, high = OCTAVES
        at = [(octave - low) / (high - low) for octave in (-3, -1, 0, 2, 4)]
        return at, ["⅛", "½", "1", "4", "16×"], "weight relative to uniform"
    if scale == "weight":
        return [0, 0.2, 0.5, 1], ["0", ".2", ".5", "1"], "weight"
    weights = [0, 0.01, 0.05, 0.2, 0.5, 1]
    return [w**0.5 for w in weights], [_short(w) for w in weights], "weight (colour: √)"


def future(T_q: int, T_k: int, *, first_query: int = 0, first_key: int = 0) -> NDArray[np.bool_]:
    """`[T_q, T_k]`: True where the key comes after the query; square blocks work the same way."""
    queries = np.arange(T_q)[:, None] + first_query
    keys = np.arange(T_k)[None, :] + first_key
    return keys > queries


def _short(weight: float) -> str:
    return f"{weight:g}".removeprefix("0") or "0"
