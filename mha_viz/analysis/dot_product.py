"""Why an attention weight is what it is, for one query and one key. No torch.

    score_ij  = scale * sum_d q_id k_jd
    weight_ij = exp(score_ij) / sum_{j' <= i} exp(score_ij')     Vaswani et al. 2017, section 3.2.1

A trace holds q and k in float32. Everything here is computed in float64, where their products are
exact, so a displayed sum is the sum of the displayed parts.
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
    """One query and one key, element by element: q, k and their products are `[d_h]`."""

    q: Numbers
    k: Numbers
    scale: float

    @property
    def products(self) -> Numbers:
        """`[d_h]`: the contribution of each element to the dot product."""
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
        """The indices of the elements, in order or, with `by_size`, largest magnitude first."""
        if by_size:
            return np.argsort(-np.abs(self.products), kind="stable")
        return np.arange(len(self.q))


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """The softmax of one query, step by step; all arrays are `[T]`, one entry per key.

    `scores` includes the keys after the query, which are masked: their `exps` and `weights` are 0.
    The row's maximum is subtracted before the exponential; that leaves the weights the same and
    prevents overflow.
    """

    query: int
    scores: Numbers

    @property
    def largest(self) -> float:
        """The largest score of a key that is not masked."""
        return float(self.scores[: self.query + 1].max())

    @property
    def exps(self) -> Numbers:
        """exp(score - largest), and 0 for masked keys."""
        out = np.zeros_like(self.scores)
        seen = self.scores[: self.query + 1]
        out[: self.query + 1] = np.exp(seen - self.largest)
        return out

    @property
    def weights(self) -> Numbers:
        """The exponentials divided by their sum."""
        exps = self.exps
        shares: Numbers = exps / exps.sum()
        return shares

    def strongest(self, n: int, *, also: int | None = None) -> list[int]:
        """The n keys with the largest weights, largest first, then `also`."""
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
    """The dot product of the query at one position and the key at any other.

    Raises HeadNotFound, and ShapeError for a position that is not in the text.
    """
    _check(trace, layer, head, query, key)
    return DotProduct(
        q=trace.q[layer, head, query].astype(np.float64),
        k=trace.k[layer, head, key].astype(np.float64),
        scale=trace.scales[layer],
    )


def softmax_row(trace: Trace, layer: int, head: int, query: int) -> Row:
    """The softmax of a query. Raises HeadNotFound, ShapeError for a position not in the text."""
    _check(trace, layer, head, query)
    q = trace.q[layer, head, query].astype(np.float64)
    k = trace.k[layer, head].astype(np.float64)
    return Row(query=query, scores=(k @ q) * trace.scales[layer])


def scores(trace: Trace, layer: int, head: int, *, masked: bool = False) -> Array:
    """`[T, T]`: the scaled dot products, one row per query; with `masked`, NaN after the query.

    Raises HeadNotFound.
    """
    _check(trace, layer, head)
    q = trace.q[layer, head] * np.float32(trace.scales[layer])
    out: Array = q @ trace.k[layer, head].T
    if masked:
        out[~np.tri(len(out), dtype=np.bool_)] = np.nan
    return out


def lines(pattern: Array, *, most: int = 8, threshold: float = 0.0, first_key: int = 0) -> Lines:
    """For each row of a pattern `[T, T]`, its `most` largest weights that reach the threshold.

    Masked keys are excluded, and so are keys before `first_key`; 1 leaves out a sink on the first
    token. Raises ShapeError for `most` below 1.
    """
    if most < 1:
        raise ShapeError(f"most = {most}; expected at least one line per row.")
    of_keys = pattern[:, first_key:]
    T, n_keys = of_keys.shape
    n = min(most, n_keys)
    keys = (
        np.argpartition(of_keys, n_keys - n, axis=1)[:, n_keys - n :]
        if n
        else np.zeros((T, 0), int)
    )
    weights = np.take_along_axis(of_keys, keys, axis=1)
    keys = keys + first_key
    queries = np.broadcast_to(np.arange(T)[:, None], keys.shape)
    drawn = (weights >= threshold) & (keys <= queries)
    unsorted = Lines(queries[drawn], keys[drawn], weights[drawn])
    return take(unsorted, _strongest_first(unsorted))


def take(lines: Lines, indices: Positions) -> Lines:
    """The lines at these indices."""
    return Lines(lines.queries[indices], lines.keys[indices], lines.weights[indices])


def strongest(heads: Sequence[Lines], most: int) -> list[Lines]:
    """The `most` strongest lines over all heads, as one `Lines` per head."""
    if sum(map(len, heads)) <= most:
        return list(heads)
    weights = np.concatenate([one.weights for one in heads])
    owner = np.repeat(np.arange(len(heads)), [len(one) for one in heads])
    kept = np.argsort(-weights, kind="stable")[:most]
    counts = np.bincount(owner[kept], minlength=len(heads))
    return [take(one, np.arange(n)) for one, n in zip(heads, counts, strict=True)]


def without_first(pattern: Array, *, renormalised: bool = False) -> Array:
    """The pattern `[T, T]` without its first key, which becomes NaN.

    With `renormalised`, the rest of each row sums to 1: A_ij / (1 - A_i0). A row that looks only at
    the first key, such as row 0, becomes NaN.
    """
    out = pattern.astype(np.float64)
    out[:, 0] = np.nan
    if renormalised:
        rest = np.nansum(out, axis=1, keepdims=True)
        out = np.divide(out, rest, out=np.full_like(out, np.nan), where=rest > 0)
        out[0] = np.nan
    rest_of_rows: Array = out.astype(np.float32)
    return rest_of_rows


def share_of_first(amounts: Array, queries: Positions | None = None) -> float:
    """The share of `[T, T]` on the first key, over these `queries` (default: all); NaN for T = 1.

    Query 0 is excluded because it has no other key. `trace.text_queries` excludes special tokens,
    as all means over queries do. For a pattern this is the mean of A_i0; for value-weighted
    attention, the first token's share of all norms.
    """
    rows = amounts[slice(1, None) if queries is None else queries[queries > 0]].astype(np.float64)
    total = rows.sum()
    return float(rows[:, 0].sum() / total) if total > 0 else float("nan")


def _strongest_first(lines: Lines) -> Positions:
    """The indices by descending weight; ties go to the earlier query, then to the earlier key."""
    order: Positions = np.lexsort((lines.keys, lines.queries, -lines.weights))
    return order


def _check(trace: Trace, layer: int, head: int, *positions: int) -> None:
    Head(layer, head).check(trace.n_layers, trace.n_heads, model=trace.model)
    for position in positions:
        if not 0 <= position < trace.n_tokens:
            raise ShapeError(
                f"There is no position {position}: the text has positions 0 to "
                f"{trace.n_tokens - 1}."
            )
