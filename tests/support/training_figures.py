"""Patterns that the tests of training figures draw."""

import numpy as np


def triangles(n_heads: int, T: int = 8) -> np.ndarray:
    rng = np.random.default_rng(n_heads)
    weights = np.tril(rng.random((n_heads, T, T))).astype(np.float32)
    return weights / weights.sum(axis=-1, keepdims=True)
