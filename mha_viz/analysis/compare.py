"""Two traces side by side: tokens aligned by a diff, and how much each head changed.

Two texts, two models with as many layers and heads, or one model before and after a change:

    compare.change(model.trace("..."), model.trace("..."))
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

import numpy as np
from numpy.typing import NDArray

from mha_viz.errors import ShapeError
from mha_viz.trace import Array, Trace

Numbers = NDArray[np.float64]
Positions = NDArray[np.intp]

DISTANCE = (
    "mean total variation distance over aligned queries: half the sum of the differences of the "
    "weights on aligned keys and of the weight on everything else, which counts as one key; "
    "0 is no change, 1 is no weight in common"
)


@dataclass(frozen=True, slots=True, eq=False)
class Alignment:
    """Pairs of positions with equal tokens, both rising: `a[n]` goes with `b[n]`."""

    a: Positions
    b: Positions

    def __len__(self) -> int:
        return len(self.a)


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """How far apart the patterns of each head are, `[L, H]`; see `DISTANCE`.

    `elsewhere_a` and `elsewhere_b` are the mean weights of the same queries on keys that are not
    aligned: what moves among those keys is not seen. `n_queries` rows were compared. All are NaN
    where there are none, and for heads that were taken out of either model.
    """

    distance: Numbers
    elsewhere_a: Numbers
    elsewhere_b: Numbers
    n_queries: int


def align(a: Sequence[Hashable], b: Sequence[Hashable]) -> Alignment:
    """The positions at which two sequences hold the same, in the same order: a diff.

    The longest common run first, then the longest on either side of it, and so on, as difflib's
    SequenceMatcher does it (Ratcliff and Metzener 1988). Nothing is guessed: what is not equal is
    not paired.
    """
    blocks = SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks()
    pairs = [(m.a + n, m.b + n) for m in blocks for n in range(m.size)]
    both = np.array(pairs, dtype=np.intp).reshape(-1, 2)
    return Alignment(both[:, 0], both[:, 1])


def align_traces(a: Trace, b: Trace) -> Alignment:
    """The aligned tokens of two traces.

    Tokens are equal where they are the same bytes and both text or both special. Within one
    vocabulary that is the same id, and it holds across two as well.
    """
    left, right = ([(t.bytes, t.kind == "special") for t in trace.details] for trace in (a, b))
    return align(left, right)


def change(
    a: Trace,
    b: Trace,
    alignment: Alignment | None = None,
    *,
    on_layer: Callable[[int], None] | None = None,
) -> Change:
    """How much each head changed from `a` to `b`, over the aligned queries and keys.

    The mean over aligned queries of (sum_j |A_ij - B_i'j'| + |A_i,else - B_i'else|) / 2, j over
    aligned keys. Queries at position 0 of either are left out, since they can only look at
    themselves. The alignment is `align_traces` unless given. Never holds more than two patterns.
    `on_layer` is told the number of layers that are done, and may raise to stop. Raises ShapeError
    for models with other numbers of layers or heads.
    """
    pairs = _pairs(a, b, alignment)
    rows = (pairs.a > 0) & (pairs.b > 0)
    found = np.full((3, a.n_layers, a.n_heads), np.nan)
    for layer in range(a.n_layers if rows.any() else 0):
        for head in range(a.n_heads):
            found[:, layer, head] = _distance(
                a.pattern(layer, head)[np.ix_(pairs.a[rows], pairs.a)],
                b.pattern(layer, head)[np.ix_(pairs.b[rows], pairs.b)],
            )
        if on_layer is not None:
            on_layer(layer + 1)
    return Change(found[0], found[1], found[2], int(rows.sum()))


def aligned_patterns(
    a: Trace, b: Trace, layer: int, head: int, alignment: Alignment | None = None
) -> tuple[Array, Array]:
    """The patterns `[n, n]` of a head in both, over the aligned positions; subtract them at will.

    Rows add up to less than 1 by what lies on keys that are not aligned. Raises HeadNotFound, and
    ShapeError as `change` does.
    """
    pairs = _pairs(a, b, alignment)
    return (
        a.pattern(layer, head)[np.ix_(pairs.a, pairs.a)],
        b.pattern(layer, head)[np.ix_(pairs.b, pairs.b)],
    )


def _distance(a: Array, b: Array) -> tuple[float, float, float]:
    """The distance of rows `[n, m]`, and the mean weights that they leave for everything else."""
    rest_a, rest_b = (1 - rows.sum(axis=1, dtype=np.float64) for rows in (a, b))
    moved = np.abs(a - b).sum(axis=1, dtype=np.float64)
    distance = (moved + np.abs(rest_a - rest_b)) / 2
    # Weights are rounded to float32: where all keys are aligned, the rest may fall below 0.
    return float(distance.mean()), max(0.0, float(rest_a.mean())), max(0.0, float(rest_b.mean()))


def _pairs(a: Trace, b: Trace, alignment: Alignment | None) -> Alignment:
    if (a.n_layers, a.n_heads) != (b.n_layers, b.n_heads):
        raise ShapeError(
            f"{a.model} has {a.n_layers} layers of {a.n_heads} heads and {b.model} "
            f"{b.n_layers} of {b.n_heads}; heads can only be compared one by one."
        )
    return align_traces(a, b) if alignment is None else alignment
