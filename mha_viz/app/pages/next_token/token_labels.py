"""Labels of predicted tokens and of actual next tokens, for the figures of the Next token page."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from mha_viz.model import Model
from mha_viz.trace import Array, Trace


def labels(model: Model, ids: Iterable[int]) -> list[str]:
    """The label of each token, as if it stood alone."""
    return [token.label for token in model.read(list(ids))]


def label_rows(model: Model, ids: NDArray[np.int64]) -> list[list[str]]:
    """The labels of the tokens `[n, m]`, as n rows."""
    flat, m = labels(model, ids.ravel().tolist()), ids.shape[1]
    return [flat[start : start + m] for start in range(0, len(flat), m)]


def actual_next_ids(trace: Trace, positions: range) -> NDArray[np.int64]:
    """The actual next token after each position; -1 after the last one of the text."""
    ids = [*trace.token_ids, -1]
    return np.array(ids[positions.start + 1 : positions.stop + 1], dtype=np.int64)


def actual_next_labels(trace: Trace, positions: range) -> list[str]:
    """The label of the actual next token after each position; "" after the last one."""
    return [*trace.tokens, ""][positions.start + 1 : positions.stop + 1]


def two_digits(p: float) -> str:
    """A probability in two digits, never rounded to 0 or to 1."""
    return "<0.01" if p < 0.005 else ">0.99" if p >= 0.995 else f"{p:.2f}"


def ranked_header(k: int) -> list[str]:
    """Column names for `ranked_cells`."""
    return [f"{name} {rank}" for rank in range(1, k + 1) for name in ("top", "p")]


def ranked_cells(top: Sequence[str], probabilities: Array) -> list[object]:
    """The top tokens, each with its probability, as cells of one row."""
    pairs = zip(top, probabilities.tolist(), strict=True)
    return [cell for pair in pairs for cell in pair]
