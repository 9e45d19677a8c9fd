"""Numbers about a head, from its pattern on a text.

All are means over the queries from position 1 on: the first token can only look at itself, so its
row says nothing about the head.
"""

from dataclasses import dataclass

import numpy as np

from mha_viz.trace import Array


@dataclass(frozen=True, slots=True)
class Summary:
    """Mean weights on three places, and how wide and how far the head looks; NaN for one token."""

    first_token: float  # weight on position 0: the sink (Xiao et al. 2023)
    previous_token: float  # weight on position i - 1; 1 where it looks nowhere else
    itself: float  # weight on position i
    entropy: float  # of a row, in units of ln(i + 1): 0 is one key, 1 is all keys alike
    distance: float  # mean of i - j under the row's weights, in tokens


def summary(pattern: Array) -> Summary:
    """The measures of one pattern `[T, T]`."""
    T = len(pattern)
    if T < 2:
        return Summary(*[float("nan")] * 5)
    i = np.arange(1, T)
    rows = pattern[1:].astype(np.float64)
    logs = np.log(np.where(rows > 0, rows, 1.0))
    entropy = -(rows * logs).sum(axis=1) / np.log(i + 1)
    distance = i - rows @ np.arange(T)
    return Summary(
        first_token=float(rows[:, 0].mean()),
        previous_token=float(rows[i - 1, i - 1].mean()),
        itself=float(rows[i - 1, i].mean()),
        entropy=float(entropy.mean()),
        distance=float(distance.mean()),
    )
