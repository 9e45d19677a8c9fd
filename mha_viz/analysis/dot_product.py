"""Why a weight is what it is, one query and one key at a time: no torch here.

    score_ij  = scale * sum_d q_id k_jd
    weight_ij = exp(score_ij) / sum_{j' <= i} exp(score_ij')     Vaswani et al. 2017, section 3.2.1

A trace holds q and k as float32. Their products are exact in float64, in which everything here is
computed, so a sum that is shown is the sum of what is shown beside it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mha_viz.errors import ShapeError
from mha_viz.head import Head
from mha_viz.trace import Array, Trace

Numbers = NDArray[np.float64]
Positions = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class DotProduct:
    """A query times a key, element by element: q, k and their products are `[d_h]`."""

    q: Numbers
    k: Numbers
    scale: float

    @property
    def products(self) -> Numbers:
        """`[d_h]`: what each element adds to the sum."""
        return self.q * self.k

    @property
    def total(self) -> float:
        """The dot product, before the scale."""
        return float(self.products.sum())

    @property
    def score(self) -> float:
        """The dot product times the scale."""
        return self.total * self.scale

    def order(self, *, by_size: bool) -> Positions:
        """The elements as they lie, or those that add or take most first."""
        if by_size:
            return np.argsort(-np.abs(self.products), kind="stable")
        return np.arange(len(self.q))


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """The softmax of one query, step by step; all arrays are `[T]`, one entry a key.

    `scores` are those of the keys beyond the query too, which the mask takes out: there `exps` and
    `weights` are 0. The largest score is subtracted before the exponential, which changes no
    weight and lets none overflow.
    """

    query: int
    scores: Numbers

    @property
    def largest(self) -> float:
        """The largest score that the mask lets through."""
        return float(self.scores[: self.query + 1].max())

    @property
    def exps(self) -> Numbers:
        """exp(score - largest), and 0 for what is masked."""
        out = np.zeros_like(self.scores)
        seen = self.scores[: self.query + 1]
        out[: self.query + 1] = np.exp(seen - self.largest)
        return out

    @property
    def weights(self) -> Numbers:
        """The exponentials over their sum: they add up to 1."""
        exps = self.exps
        shares: Numbers = exps / exps.sum()
        return shares

    def strongest(self, n: int, *, also: int | None = None) -> list[int]:
        """The n keys of the largest weights, largest first, and after them `also`."""
        keys: list[int] = np.argsort(-self.weights[: self.query + 1], kind="stable")[:n].tolist()
        return keys if also is None or also in keys else [*keys, also]


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """The strongest weights of a pattern: three arrays `[n]`, the largest weight first."""

    queries: Positions
    keys: Positions
    weights: Array

    def __len__(self) -> int:
        return len(self.weights)


def dot_product(trace: Trace, layer: int, head: int, query: int, key: int) -> DotProduct:
    """The query at one position times the key at another, which may lie beyond it.

    Raises HeadNotFound, and ShapeError for a position that is not in the text.
    """
    _check(trace, layer, head, query, key)
    return DotProduct(
        q=trace.q[layer, head, query].astype(np.float64),
        k=trace.k[layer, head, key].astype(np.float64),
        scale=trace.scales[layer],
    )


def softmax_row(trace: Trace, layer: int, head: int, query: int) -> Row:
    """The row of a query. Raises HeadNotFound, and ShapeError for a position not in the text."""
    _check(trace, layer, head, query)
    q = trace.q[layer, head, query].astype(np.float64)
    k = trace.k[layer, head].astype(np.float64)
    return Row(query=query, scores=(k @ q) * trace.scales[layer])


def scores(trace: Trace, layer: int, head: int, *, masked: bool = False) -> Array:
    """`[T, T]`: the scaled dot products, a row a query; NaN beyond it where they are `masked`.

    Raises HeadNotFound.
    """
    _check(trace, layer, head)
    q = trace.q[layer, head] * np.float32(trace.scales[layer])
    out: Array = q @ trace.k[layer, head].T
    if masked:
        out[~np.tri(len(out), dtype=np.bool_)] = np.nan
    return out


def lines(pattern: Array, *, most: int = 8, threshold: float = 0.0) -> Lines:
    """Of each row of a pattern `[T, T]` the `most` largest weights that reach the threshold.

    What is masked is no line, whatever the threshold. Raises ShapeError for `most` below 1.
    """
    if most < 1:
        raise ShapeError(f"most = {most}; a row has at least one line.")
    T = len(pattern)
    n = min(most, T)
    keys = np.argpartition(pattern, T - n, axis=1)[:, T - n :]
    weights = np.take_along_axis(pattern, keys, axis=1)
    queries = np.broadcast_to(np.arange(T)[:, None], keys.shape)
    drawn = (weights >= threshold) & (keys <= queries)
    found = Lines(queries[drawn], keys[drawn], weights[drawn])
    return take(found, _strongest_first(found))


def take(found: Lines, at: Positions) -> Lines:
    """The lines at these places."""
    return Lines(found.queries[at], found.keys[at], found.weights[at])


def strongest(heads: Sequence[Lines], most: int) -> list[Lines]:
    """The `most` strongest lines of all these heads together, head by head."""
    if sum(map(len, heads)) <= most:
        return list(heads)
    weights = np.concatenate([one.weights for one in heads])
    owner = np.repeat(np.arange(len(heads)), [len(one) for one in heads])
    kept = np.argsort(-weights, kind="stable")[:most]
    counts = np.bincount(owner[kept], minlength=len(heads))
    return [take(one, np.arange(n)) for one, n in zip(heads, counts, strict=True)]


def without_first(pattern: Array, *, renormalised: bool = False) -> Array:
    """The pattern `[T, T]` with its first key taken out: NaN there.

    `renormalised`, what is left of each row adds up to 1: A_ij / (1 - A_i0). A row that looked at
    nothing else, as the first one does, has nothing left and is NaN.
    """
    out = pattern.astype(np.float64)
    out[:, 0] = np.nan
    if renormalised:
        rest = np.nansum(out, axis=1, keepdims=True)
        out = np.divide(out, rest, out=np.full_like(out, np.nan), where=rest > 0)
        out[0] = np.nan
    found: Array = out.astype(np.float32)
    return found


def share_of_first(amounts: Array) -> float:
    """The share of `[T, T]` that lies on the first key, over queries 1 to T - 1; NaN for T = 1.

    Query 0 has no other key to look at. Of a pattern it is the mean of A_i0; of value-weighted
    attention, the part of all norms that the first token's are.
    """
    rows = amounts[1:].astype(np.float64)
    total = rows.sum()
    return float(rows[:, 0].sum() / total) if total > 0 else float("nan")


def _strongest_first(found: Lines) -> Positions:
    """Of equal weights, the earlier query and then the earlier key is first."""
    order: Positions = np.lexsort((found.keys, found.queries, -found.weights))
    return order


def _check(trace: Trace, layer: int, head: int, *positions: int) -> None:
    Head(layer, head).check(trace.n_layers, trace.n_heads, model=trace.model)
    for position in positions:
        if not 0 <= position < trace.n_tokens:
            raise ShapeError(
                f"There is no position {position}: the text has {trace.n_tokens} tokens, counted "
                "from 0."
            )
