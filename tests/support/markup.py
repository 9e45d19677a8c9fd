"""Text that Plotly would read as markup, and values that several figure tests draw."""

import numpy as np

EVIL = "<b>&$x$"


SAFE = "&lt;b&gt;&amp;&#36;x&#36;"


def values(T: int, *, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((T, T)).astype(np.float32)


def lower(matrix: np.ndarray) -> np.ndarray:
    return np.where(np.tri(len(matrix), dtype=bool), matrix, np.float32(np.nan))
