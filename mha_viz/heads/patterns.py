"""Measures of one pattern A `[T, T]`: A_ij is how much query i looks at key j, rows add up to 1.

Row 0 never counts: the first token can only look at itself, so its row says nothing about the
head. `queries` says which of the others count; all of them unless given. A mean over no query is
NaN, and so is every measure of a pattern of NaN, which is that of a head taken out of its model.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mha_viz.tokens import Token
from mha_viz.trace import Array, Trace

Numbers = NDArray[np.float64]
Positions = NDArray[np.intp]

POSITIONAL = 0.9  # the share from which Voita et al. 2019, section 5.1, call a head positional
NEAR = 4  # tokens back, within which most English words have the word they depend on


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
    return Summary(
        first_token=first_token(pattern),
        previous_token=previous_token(pattern),
        itself=itself(pattern),
        entropy=entropy(pattern),
        distance=distance(pattern),
    )


def text_positions(tokens: Sequence[Token]) -> Positions:
    """The positions, 0 among them, that hold no special token: text, not a mark between texts."""
    return np.flatnonzero([token.kind != "special" for token in tokens])


def kept_heads(trace: Trace, layer: int) -> list[int]:
    """The heads of a layer that the model has; those that were taken out of it are NaN."""
    return [head for head in range(trace.n_heads) if not np.isnan(trace.q[layer, head, 0, 0])]


# --- where the weight lies ------------------------------------------------------------------------


def previous_token(pattern: Array, queries: Positions | None = None) -> float:
    """Mean of A[i, i - 1], in [0, 1].

    The token before the second is the first, so its row counts for `first_token` as well. Source:
    Wang et al. 2022, section 3, name the role.
    """
    i = _queries(pattern, queries)
    return _mean(pattern[i, i - 1])


def first_token(pattern: Array, queries: Positions | None = None) -> float:
    """Mean of A[i, 0], in [0, 1]: the attention sink. Source: Xiao et al. 2023, section 3.1."""
    return _mean(pattern[_queries(pattern, queries), 0])


def itself(pattern: Array, queries: Positions | None = None) -> float:
    """Mean of A[i, i], in [0, 1]."""
    i = _queries(pattern, queries)
    return _mean(pattern[i, i])


def entropy(pattern: Array, queries: Positions | None = None) -> float:
    """Mean of -sum_j A_ij ln A_ij / ln(i + 1), in [0, 1]: 0 is one key, 1 is all keys alike.

    Row i has i + 1 keys to choose from; without the division a long text would look wide by its
    length alone. Source: Clark et al. 2019, section 3.3, who take it without the division.
    """
    i, rows = _queries(pattern, queries), _rows(pattern, queries)
    logs = np.log(np.where(rows > 0, rows, np.float32(1)))
    logs *= rows
    return _mean(-logs.sum(axis=1, dtype=np.float64) / np.log(i + 1))


def distance(pattern: Array, queries: Positions | None = None) -> float:
    """Mean of sum_j A_ij (i - j), in tokens.

    It grows with the text for a head that rests on the first token. Source: Vig and Belinkov
    2019, "attention distance".
    """
    i, keys = _queries(pattern, queries), np.arange(len(pattern), dtype=pattern.dtype)
    return _mean(i - _rows(pattern, queries) @ keys)


def confidence(
    pattern: Array, queries: Positions | None = None, keys: Positions | None = None
) -> float:
    """Mean of max_j A_ij over the keys that count, in [0, 1]; all keys count unless given.

    Source: Voita et al. 2019, section 4, who leave out the mark at the end of a sentence, since it
    is no word: the keys of a text are its `text_positions`. A first token among them stays,
    though heads rest on it; the weight on it alone is `first_token`.
    """
    rows = _rows(pattern, queries)
    if keys is not None:
        rows = rows[:, keys]
    return _mean(rows.max(axis=1)) if rows.size else float("nan")


# --- where the largest weight lies ----------------------------------------------------------------


class Targets(NamedTuple):
    """Queries i `[n]`, and for each the key j `[n]` that it looks at most."""

    i: Positions
    j: Positions


def targets(pattern: Array, queries: Positions | None = None) -> Targets:
    """Where each query looks most; of equal keys, the first. Empty for a pattern of NaN."""
    i, rows = _queries(pattern, queries), _rows(pattern, queries)
    if np.isnan(rows[:, 0]).any():
        i, rows = i[:0], rows[:0]
    return Targets(i, rows.argmax(axis=1))


def favourite_offset(found: Targets) -> tuple[int, float]:
    """The offset i - j at which the largest weight lies most often, and how often, in [0, 1].

    The nearest of equals, and (0, NaN) without a query. Source: Voita et al. 2019, section 5.1.
    """
    i, j = found
    if not len(i):
        return 0, float("nan")
    counts = np.bincount(i - j)
    return int(counts.argmax()), float(counts.max() / len(i))


def positional(found: Targets) -> float:
    """How often the largest weight lies at one and the same offset; see `favourite_offset`.

    A head is called positional from `POSITIONAL` on.
    """
    return favourite_offset(found)[1]


def syntactic_by_offset(found: Targets) -> float:
    """How often the largest weight lies 1 to `NEAR` tokens back, but not at one fixed offset.

    Of the queries whose largest weight is that near, those at the head's favourite near offset
    are taken off; the first token does not count as near. In [0, 1). A head that follows syntax
    looks near and at varying offsets; one with a high value need not follow any. Source: the
    baseline of Voita et al. 2019, section 5.2, a fixed offset, which a syntactic head must beat.
    """
    i, j = found
    offsets = (i - j)[j > 0]
    counts = np.bincount(offsets[(offsets > 0) & (offsets <= NEAR)], minlength=1)
    return float((counts.sum() - counts.max()) / len(i)) if len(i) else float("nan")


def rare_token(found: Targets, rarity: Positions) -> float:
    """How often the largest weight lies on the rarest token so far, in [0, 1].

    `rarity` `[T]` rises with how rare a token is. A query counts where the rarest token so far is
    neither itself nor the first token, which draws weight by its place alone. Source: Voita et al.
    2019, section 5.3.
    """
    i, j = found
    rarest = np.maximum.accumulate(rarity)[i]
    counts = (rarity[i] < rarest) & (rarity[0] < rarest)
    return _mean(rarity[j[counts]] == rarest[counts])


# --- on tokens that repeat ------------------------------------------------------------------------


def duplicate_token(pattern: Array, period: int) -> float:
    """Mean of A[i, i - n] over i > n, in [0, 1], on tokens that repeat with period n.

    The copy of the first token is left out: its duplicate is where a sink looks. Source: Wang et
    al. 2022, section 3, name the role.
    """
    i = np.arange(period + 1, len(pattern))
    return _mean(pattern[i, i - period])


def induction(pattern: Array, period: int) -> float:
    """Mean of A[i, i - n + 1] over i >= n, in [0, 1], on tokens that repeat with period n.

    It is the weight on what followed the latest copy of this token. Source: Olsson et al. 2022.
    """
    i = np.arange(period, len(pattern))
    return _mean(pattern[i, i - period + 1])


def prefix_matching(pattern: Array, ids: Sequence[int]) -> float:
    """Mean of the weight on all tokens that followed earlier copies of this one, in [0, 1].

    Over the queries whose token stood before. A token that follows its own copy would be its own
    target, and does not count. Source: Olsson et al. 2022, "prefix matching score".
    """
    same = np.equal.outer(ids, ids)
    after = np.zeros_like(same)
    after[:, 1:] = same[:, :-1]
    after = np.tril(after, -1)
    i = np.flatnonzero(after.any(axis=1))
    return _mean((pattern[i] * after[i]).sum(axis=1, dtype=np.float64))


def _queries(pattern: Array, queries: Positions | None) -> Positions:
    if queries is None:
        return np.arange(1, len(pattern))
    return queries[queries > 0]


def _rows(pattern: Array, queries: Positions | None) -> Array:
    # A slice is a view; a list of rows would be a copy of the whole pattern.
    return pattern[1:] if queries is None else pattern[_queries(pattern, queries)]


def _mean(values: NDArray[np.generic]) -> float:
    return float(values.mean(dtype=np.float64)) if len(values) else float("nan")
