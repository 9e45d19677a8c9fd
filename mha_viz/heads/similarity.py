"""Similar heads: the distance between the patterns of two heads on the same text."""

import numpy as np

from mha_viz.callbacks import OnLayer
from mha_viz.errors import ShapeError
from mha_viz.head import Head
from mha_viz.heads.patterns import Numbers, Positions, kept_heads
from mha_viz.trace import Array, Trace

DISTANCE = (
    "mean total variation distance: half the sum of the absolute differences of two rows, averaged "
    "over the queries from position 1 on that are not special tokens; 0 is the same pattern, 1 is "
    "no key in common"
)


def pattern_distance(a: Array, b: Array, queries: Positions | None = None) -> float:
    """The mean over queries i >= 1 of sum_j |A_ij - B_ij| / 2, in [0, 1]; NaN without any.

    It is the share of the weight that would have to move to another key. Two heads with strong
    attention sinks are similar for that reason alone. Raises ShapeError for different sizes.
    """
    if a.shape != b.shape:
        raise ShapeError(
            f"The patterns have shapes {list(a.shape)} and {list(b.shape)}; they must be equal."
        )
    rows = slice(1, None) if queries is None else queries[queries > 0]
    differences = np.abs(a[rows] - b[rows]).sum(axis=1, dtype=np.float64)
    return float(differences.mean() / 2) if len(differences) else float("nan")


def distances(trace: Trace, layer: int, head: int, *, on_layer: OnLayer | None = None) -> Numbers:
    """`[L, H]`: the `pattern_distance` of every head to this one; NaN for pruned heads.

    Queries that are special tokens do not count. Only two patterns are in memory at a time.
    `on_layer` is called with the number of layers done; an exception that it raises stops the work.
    Raises HeadNotFound.
    """
    this, queries = trace.pattern(layer, head), trace.text_queries
    kept = kept_heads(trace, layer)
    Head(layer, head).check(trace.n_layers, trace.n_heads, kept, model=trace.model)
    result = np.full((trace.n_layers, trace.n_heads), np.nan)
    for number in range(trace.n_layers):
        for other in kept_heads(trace, number):
            result[number, other] = pattern_distance(this, trace.pattern(number, other), queries)
        if on_layer is not None:
            on_layer(number + 1)
    return result


def similar_heads(
    distances: Numbers, layer: int, head: int, n: int = 5
) -> list[tuple[int, int, float]]:
    """The n heads with the smallest distances, as (layer, head, distance), nearest first.

    `distances` is the result of the function `distances` for this head, which is not in the list.
    """
    order = distances.argsort(axis=None, kind="stable")
    heads = (divmod(int(flat), distances.shape[1]) for flat in order)
    others = [at for at in heads if at != (layer, head) and np.isfinite(distances[at])]
    return [(*at, float(distances[at])) for at in others[:n]]
