"""Two traces compared: tokens aligned by a diff, and how much each head's patterns changed.

The traces may be of two texts, of two models with equal numbers of layers and heads, or of one
model before and after a change:

    compare.change(model.trace("..."), model.trace("..."))
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

import numpy as np
from numpy.typing import NDArray

from mha_viz.callbacks import OnLayer
from mha_viz.errors import ShapeError
from mha_viz.trace import Array, Trace

Numbers = NDArray[np.float64]
Positions = NDArray[np.intp]

DISTANCE = (
    "mean total variation distance over aligned queries that are not special tokens: half the sum "
    "of the absolute differences in weight, over the aligned keys and all other keys as one; 0 is "
    "no change, 1 is no weight in common"
)


@dataclass(frozen=True, slots=True, eq=False)
class Alignment:
    """Pairs of positions with equal tokens, in ascending order: `a[n]` is paired with `b[n]`."""

    a: Positions
    b: Positions

    def __len__(self) -> int:
        return len(self.a)


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """The distance between the patterns of each head, `[L, H]`; see `DISTANCE`.

    `elsewhere_a` and `elsewhere_b` are the mean weights of the compared queries on keys that are
    not aligned; a change among those keys does not count. `n_queries` rows were compared. The
    arrays are NaN if there were none, and for heads pruned from either model.
    """

    distance: Numbers
    elsewhere_a: Numbers
    elsewhere_b: Numbers
    n_queries: int


def align(a: Sequence[Hashable], b: Sequence[Hashable]) -> Alignment:
    """The positions of equal items that are in the same order in both sequences: a diff.

    It takes the longest common run, then the longest on either side of it, and so on, as difflib's
    SequenceMatcher does (Ratcliff and Metzener 1988). Only equal items are paired.
    """
    blocks = SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks()
    pairs = [(m.a + n, m.b + n) for m in blocks for n in range(m.size)]
    both = np.array(pairs, dtype=np.intp).reshape(-1, 2)
    return Alignment(both[:, 0], both[:, 1])


def align_traces(a: Trace, b: Trace) -> Alignment:
    """The aligned tokens of two traces.

    Tokens are equal if their bytes are equal and both are text or both special. Within one
    vocabulary that means the same id; it also works across vocabularies.
    """
    left, right = ([(t.bytes, t.kind == "special") for t in trace.details] for trace in (a, b))
    return align(left, right)


def every_position(trace: Trace) -> Alignment:
    """Each position with itself, for two texts that differ in the tokens at some positions only."""
    every = np.arange(trace.n_tokens, dtype=np.intp)
    return Alignment(every, every)


def change(
    a: Trace,
    b: Trace,
    alignment: Alignment | None = None,
    *,
    on_layer: OnLayer | None = None,
) -> Change:
    """How much each head changed from `a` to `b`, over the aligned queries and keys.

    It is the mean over aligned queries of (sum_j |A_ij - B_i'j'| + |A_i,else - B_i'else|) / 2, j
    over aligned keys. Queries at position 0 of either trace do not count, since they can only look
    at themselves, and neither do queries that are special tokens. The alignment is
    `align_traces(a, b)` unless given. Only two patterns are in memory at a time. `on_layer` is
    called with the number of layers done; an exception that it raises stops the work. Raises
    ShapeError for models with different numbers of layers or heads.
    """
    pairs = _pairs(a, b, alignment)
    rows = (pairs.a > 0) & (pairs.b > 0)
    for trace, positions in ((a, pairs.a), (b, pairs.b)):
        if trace.text_queries is not None:
            rows &= np.isin(positions, trace.text_queries)
    changes = np.full((3, a.n_layers, a.n_heads), np.nan)
    for layer in range(a.n_layers if rows.any() else 0):
        for head in range(a.n_heads):
            changes[:, layer, head] = _distance(
                a.pattern(layer, head)[np.ix_(pairs.a[rows], pairs.a)],
                b.pattern(layer, head)[np.ix_(pairs.b[rows], pairs.b)],
            )
        if on_layer is not None:
            on_layer(layer + 1)
    return Change(changes[0], changes[1], changes[2], int(rows.sum()))


def row_change(a: Trace, b: Trace, query: int, alignment: Alignment | None = None) -> Numbers:
    """`[L, H]`: how much the row of one query of `a` changed, half the sum of the differences.

    The distance is that of `change`, for the row of this query alone, whatever token it is. NaN if
    the query is not aligned, and for pruned heads. Raises ShapeError as `change` does.
    """
    pairs = _pairs(a, b, alignment)
    at = np.flatnonzero(pairs.a == query)
    if not len(at):
        return np.full((a.n_layers, a.n_heads), np.nan)
    rows = [_rows(a, query)[..., pairs.a], _rows(b, int(pairs.b[at[0]]))[..., pairs.b]]
    elsewhere = [1 - row.sum(axis=-1) for row in rows]
    moved = np.abs(rows[0] - rows[1]).sum(axis=-1) + np.abs(elsewhere[0] - elsewhere[1])
    distance: Numbers = np.clip(moved / 2, 0, 1)
    return distance


def _rows(trace: Trace, query: int) -> Numbers:
    """`[L, H, T]`: the row of one query in every head; 0 for the keys after it."""
    q, k = trace.q[:, :, query].astype(np.float64), trace.k[:, :, : query + 1]
    scores = np.einsum("lhd,lhtd->lht", q, k) * np.array(trace.scales)[:, None, None]
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    rows = np.zeros((trace.n_layers, trace.n_heads, trace.n_tokens))
    rows[..., : query + 1] = weights / weights.sum(axis=-1, keepdims=True)
    return rows


def aligned_patterns(
    a: Trace, b: Trace, layer: int, head: int, alignment: Alignment | None = None
) -> tuple[Array, Array]:
    """The patterns `[n, n]` of a head in both traces, over the aligned positions.

    A row sums to 1 minus its weight on keys that are not aligned. Raises HeadNotFound, and
    ShapeError as `change` does.
    """
    pairs = _pairs(a, b, alignment)
    return (
        a.pattern(layer, head)[np.ix_(pairs.a, pairs.a)],
        b.pattern(layer, head)[np.ix_(pairs.b, pairs.b)],
    )


def _distance(a: Array, b: Array) -> tuple[float, float, float]:
    """The mean distance of rows `[n, m]`, and the mean weight of each side on all other keys."""
    rest_a, rest_b = (1 - rows.sum(axis=1, dtype=np.float64) for rows in (a, b))
    difference = np.abs(a - b).sum(axis=1, dtype=np.float64)
    distance = (difference + np.abs(rest_a - rest_b)) / 2
    # Weights are rounded to float32, so the rest can be slightly negative if all keys are aligned.
    return float(distance.mean()), max(0.0, float(rest_a.mean())), max(0.0, float(rest_b.mean()))


def check_sizes(a: Trace, b: Trace) -> None:
    """Raises ShapeError for traces of models with different numbers of layers or heads."""
    if (a.n_layers, a.n_heads) != (b.n_layers, b.n_heads):
        raise ShapeError(
            f"{a.model} has {a.n_layers} layers of {a.n_heads} heads and {b.model} "
            f"{b.n_layers} of {b.n_heads}. Only models of equal size can be compared."
        )


def _pairs(a: Trace, b: Trace, alignment: Alignment | None) -> Alignment:
    check_sizes(a, b)
    return align_traces(a, b) if alignment is None else alignment
