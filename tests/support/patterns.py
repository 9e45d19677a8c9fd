"""Random patterns that several figure tests draw."""

import numpy as np

from mha_viz.trace import Array


def random_pattern(T: int, seed: int = 0) -> Array:
    """Rows that add up to 1, the future exactly 0."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(T, T)) * 2
    scores[np.triu_indices(T, 1)] = -np.inf
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)
