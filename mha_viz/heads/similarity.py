"""Heads like this one: how far apart the patterns of two heads are on the same text."""

from collections.abc import Callable

import numpy as np

from mha_viz.errors import ShapeError
from mha_viz.head import Head
from mha_viz.heads.patterns import Numbers, kept_heads
from mha_viz.trace import Array, Trace

DISTANCE = (
    "mean total variation distance: half the sum of the differences of two rows, averaged over "
    "the queries from position 1 on; 0 is the same pattern, 1 is no key in common"
)


def pattern_distance(a: Array, b: Array) -> float:
    """The mean over i >= 1 of sum_j |A_ij - B_ij| / 2, in [0, 1]; NaN for one token.

    It is the share of the weight that would have to move to another key. Two heads that rest on
    the first token are alike by that alone. Raises ShapeError for patterns of different sizes.
    """
    if a.shape != b.shape:
        raise ShapeError(f"The patterns have shapes {list(a.shape)} and {list(b.shape)}.")
    if len(a) < 2:
        return float("nan")
    return float(np.abs(a[1:] - b[1:]).sum(axis=1, dtype=np.float64).mean() / 2)


def distances(
    trace: Trace, layer: int, head: int, *, on_layer: Callable[[int], None] | None = None
) -> Numbers:
    """`[L, H]`: the `pattern_distance` of every head to this one; NaN for heads taken out.

    Never holds more than two patterns. `on_layer` is told the number of layers that are done.
    Raises HeadNotFound for a head that is not there.
    """
    this = trace.pattern(layer, head)
    kept = kept_heads(trace, layer)
    Head(layer, head).check(trace.n_layers, trace.n_heads, kept, model=trace.model)
    found = np.full((trace.n_layers, trace.n_heads), np.nan)
    for number in range(trace.n_layers):
        for other in kept_heads(trace, number):
            found[number, other] = pattern_distance(this, trace.pattern(number, other))
        if on_layer is not None:
            on_layer(number + 1)
    return found


def similar_heads(
    found: Numbers, layer: int, head: int, n: int = 5
) -> list[tuple[int, int, float]]:
    """The n heads (layer, head, distance) nearest to this one, without itself, nearest first.

    `found` is what `distances` returned for it.
    """
    order = (divmod(int(flat), found.shape[1]) for flat in found.argsort(axis=None, kind="stable"))
    others = [at for at in order if at != (layer, head) and np.isfinite(found[at])]
    return [(*at, float(found[at])) for at in others[:n]]
