"""Measures of one pattern A `[T, T]`: A_ij is how much query i looks at key j; rows sum to 1.

Row 0 never counts: the first token can only look at itself, so its row says nothing about the head.
`queries` selects among the others (default: all). A mean over no queries is NaN, and so is every
measure of a pruned head, whose pattern is NaN.
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

POSITIONAL = 0.9  # the share at which Voita et al. 2019, section 5.1, call a head positional
NEAR = 4  # tokens back; in English, the syntactic head of a word is usually within this distance


@dataclass(frozen=True, slots=True)
class Summary:
    """Five means over the queries of one pattern; NaN for a text of one token."""

    first_token: float  # weight on position 0, the sink (Xiao et al. 2023)
    previous_token: float  # weight on position i - 1
    itself: float  # weight on position i
    entropy: float  # of a row, in units of ln(i + 1): 0 is one key, 1 is uniform
    distance: float  # i - j under the row's weights, in tokens


def summary(pattern: Array, queries: Positions | None = None) -> Summary:
    """The five measures of one pattern `[T, T]`.

    With `queries` = `trace.text_queries` they are those of `measure`: special tokens do not count.
    """
    return Summary(
        first_token=first_token(pattern, queries),
        previous_token=previous_token(pattern, queries),
        itself=itself(pattern, queries),
        entropy=entropy(pattern, queries),
        distance=distance(pattern, queries),
    )


def text_positions(tokens: Sequence[Token]) -> Positions:
    """The positions of all tokens except special ones, such as <|endoftext|>, as indices."""
    return np.flatnonzero([token.kind != "special" for token in tokens])


def kept_heads(trace: Trace, layer: int) -> list[int]:
    """The heads of a layer that have not been pruned; pruned ones are NaN in the trace."""
    return [head for head in range(trace.n_heads) if not np.isnan(trace.q[layer, head, 0, 0])]


# --- where the weight lies ------------------------------------------------------------------------


def previous_token(pattern: Array, queries: Positions | None = None) -> float:
    """Mean of A[i, i - 1], in [0, 1].

    Row 1 counts for `first_token` too, since its previous token is the first. Source: Wang et al.
    2023, section 3, for the role.
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
    """Mean of -sum_j A_ij ln A_ij / ln(i + 1), in [0, 1]: 0 is one key, 1 is uniform.

    Row i has i + 1 keys. Without the division, entropy would grow with the length of the text
    alone. Source: Clark et al. 2019, section 3.3, who do not divide.
    """
    i, rows = _queries(pattern, queries), _rows(pattern, queries)
    logs = np.log(np.where(rows > 0, rows, np.float32(1)))
    logs *= rows
    return _mean(-logs.sum(axis=1, dtype=np.float64) / np.log(i + 1))


def distance(pattern: Array, queries: Positions | None = None) -> float:
    """Mean of sum_j A_ij (i - j), in tokens.

    For a head with an attention sink, it grows with the length of the text. Source: Vig and
    Belinkov 2019, "attention distance".
    """
    i, keys = _queries(pattern, queries), np.arange(len(pattern), dtype=pattern.dtype)
    return _mean(i - _rows(pattern, queries) @ keys)


def confidence(
    pattern: Array, queries: Positions | None = None, keys: Positions | None = None
) -> float:
    """Mean of max_j A_ij over these `keys`, by default all, in [0, 1].

    Source: Voita et al. 2019, section 4, who exclude the end-of-sentence token. For a text, `keys`
    are its `text_positions`. The first token may be one, although it is often a sink; its weight
    alone is `first_token`.
    """
    rows = _rows(pattern, queries)
    if keys is not None:
        rows = rows[:, keys]
    return _mean(rows.max(axis=1)) if rows.size else float("nan")


# --- where the largest weight lies ----------------------------------------------------------------


class Targets(NamedTuple):
    """Queries i `[n]`, and for each the key j `[n]` with the largest weight."""

    i: Positions
    j: Positions


def targets(pattern: Array, queries: Positions | None = None) -> Targets:
    """Each query's key of largest weight; ties go to the first key. Empty for a NaN pattern."""
    i, rows = _queries(pattern, queries), _rows(pattern, queries)
    if np.isnan(rows[:, 0]).any():
        i, rows = i[:0], rows[:0]
    return Targets(i, rows.argmax(axis=1))


def favourite_offset(largest: Targets) -> tuple[int, float]:
    """The most frequent offset i - j of the largest weight, and its frequency, in [0, 1].

    Ties go to the smallest offset; without queries, the result is (0, NaN). Source: Voita et
    al. 2019, section 5.1.
    """
    i, j = largest
    if not len(i):
        return 0, float("nan")
    counts = np.bincount(i - j)
    return int(counts.argmax()), float(counts.max() / len(i))


def positional(largest: Targets) -> float:
    """How often the largest weight is at the favourite offset, in [0, 1]; see `favourite_offset`.

    At `POSITIONAL` or more, a head is called positional.
    """
    return favourite_offset(largest)[1]


def syntactic_by_offset(largest: Targets) -> float:
    """How often the largest weight is 1 to `NEAR` tokens back, at varying offsets, in [0, 1).

    It is the share of queries whose largest weight is that near, minus those at the most frequent
    near offset; the first token does not count as near. Syntactic heads often score high, but a
    high score does not make a head syntactic. Source: Voita et al. 2019, section 5.2, whose
    baseline for a syntactic head is one fixed offset.
    """
    i, j = largest
    offsets = (i - j)[j > 0]
    counts = np.bincount(offsets[(offsets > 0) & (offsets <= NEAR)], minlength=1)
    return float((counts.sum() - counts.max()) / len(i)) if len(i) else float("nan")


def rare_token(largest: Targets, rarity: Positions) -> float:
    """How often the largest weight is on the rarest token so far, in [0, 1].

    `rarity` `[T]` is larger for rarer tokens. A query counts if the rarest token so far is neither
    its own nor the first token, which draws weight because of its position. Source: Voita et al.
    2019, section 5.3.
    """
    i, j = largest
    rarest = np.maximum.accumulate(rarity)[i]
    counts = (rarity[i] < rarest) & (rarity[0] < rarest)
    return _mean(rarity[j[counts]] == rarest[counts])


# --- on tokens that repeat ------------------------------------------------------------------------


def duplicate_token(pattern: Array, period: int) -> float:
    """Mean of A[i, i - n] over i > n, in [0, 1], on tokens that repeat with period n.

    The copy of the first token is excluded, because its duplicate is also the sink. Source: Wang et
    al. 2023, section 3, for the role.
    """
    i = np.arange(period + 1, len(pattern))
    return _mean(pattern[i, i - period])


def induction(pattern: Array, period: int) -> float:
    """Mean of A[i, i - n + 1] over i >= n, in [0, 1], on tokens that repeat with period n.

    It is the weight on the token that followed the previous copy. Source: Olsson et al. 2022.
    """
    i = np.arange(period, len(pattern))
    return _mean(pattern[i, i - period + 1])


def prefix_matching(pattern: Array, ids: Sequence[int]) -> float:
    """Mean total weight on the tokens after earlier copies of the query's token, in [0, 1].

    The mean runs over the queries whose token occurred before. If a query comes right after a copy
    of its token, its weight on itself does not count. Source: after Olsson et al. 2022, "prefix
    matching score". They average single entries, which on four copies gives half of this.
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
