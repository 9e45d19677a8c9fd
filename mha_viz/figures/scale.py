"""From a weight to a colour position in [0, 1]: one mapping for thumbnail, heatmap and strip."""

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from mha_viz.trace import Array

Scale = Literal["sqrt", "weight", "share"]
SCALES: tuple[Scale, ...] = get_args(Scale)
SHARE_OCTAVES = (-3.0, 4.0)  # log2 of weight over even share, clipped


def position(pattern: Array, scale: Scale, *, first_query: int = 0, block: int = 1) -> Array:
    """Where each weight of `[..., T_q, T_k]` lies on the colour scale.

    "sqrt" is the square root, on a range that every head shares; "weight" the weight itself;
    "share" compares with the even share 1 / (i + 1) of query i, in octaves. Row r of `pattern`
    stands for the queries from first_query + r * block on.
    """
    if scale == "weight":
        return pattern
    if scale == "sqrt":
        root: Array = np.sqrt(pattern)
        return root
    rows = np.arange(pattern.shape[-2], dtype=np.float32) * block + first_query
    low, high = SHARE_OCTAVES
    share = pattern * (rows + 1)[:, None]
    octaves = np.log2(np.maximum(share, np.float32(2**low)))
    clipped: Array = ((np.minimum(octaves, np.float32(high)) - low) / (high - low)).astype(
        np.float32
    )
    return clipped


def ticks(scale: Scale) -> tuple[list[float], list[str], str]:
    """Positions, labels and title of the colour bar."""
    if scale == "share":
        low, high = SHARE_OCTAVES
        octaves = [-3, -1, 0, 2, 4]
        labels = ["⅛", "½", "1", "4", "16 ×"]
        return [(o - low) / (high - low) for o in octaves], labels, "weight against an even share"
    weights = [0, 0.01, 0.05, 0.2, 0.5, 1] if scale == "sqrt" else [0, 0.2, 0.5, 1]
    at = [w**0.5 if scale == "sqrt" else w for w in weights]
    labels = [f"{w:g}".removeprefix("0") or "0" for w in weights]
    return at, labels, "weight (colour = √)" if scale == "sqrt" else "weight"


def hidden(T_q: int, T_k: int, *, first_query: int = 0, first_key: int = 0) -> NDArray[np.bool_]:
    """`[T_q, T_k]`: True where the key lies beyond the query. It also holds for square blocks."""
    queries = np.arange(T_q)[:, None] + first_query
    keys = np.arange(T_k)[None, :] + first_key
    return keys > queries
