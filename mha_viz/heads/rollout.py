"""Many heads in one picture: the mean, the maximum, and attention rollout.

None of them holds more than a few `[T, T]` at once: patterns come one by one and are merged. Heads
that were taken out of the model do not count.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from mha_viz.errors import HeadNotFound, ShapeError
from mha_viz.heads.patterns import kept_heads
from mha_viz.trace import Array, Trace

OnLayer = Callable[[int], None]  # told the number of layers that are done; may raise, to stop


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A way to merge heads: its formula in KaTeX, and what it does not say."""

    title: str
    formula: str
    limits: str
    source: str


AGGREGATES: dict[str, Aggregate] = {
    "mean": Aggregate(
        "Mean",
        r"\bar A_{ij} = \frac{1}{H} \sum_h A^{(h)}_{ij}",
        "Every head counts the same, whether the model uses it or not. A head that looks sharply "
        "at one place fades among others that look elsewhere. Rows add up to 1.",
        "",
    ),
    "maximum": Aggregate(
        "Maximum",
        r"M_{ij} = \max_h A^{(h)}_{ij}",
        "The strongest head of each cell; which one it was differs from cell to cell. Rows add up "
        "to more than 1, so it is no distribution.",
        "",
    ),
    "rollout": Aggregate(
        "Attention rollout",
        r"\tilde A_l = \tfrac12 \bar A_l + \tfrac12 I, \qquad R_l = \tilde A_l R_{l-1}, "
        r"\quad R_{-1} = I",
        "It takes the residual stream and attention for equal halves, the heads of a layer for "
        "equal, and leaves out values, MLPs and LayerNorm. It was made for encoders: under a "
        "causal mask a path can only lead back, so with every layer more weight drifts to position "
        "0, also without a sink. Rows add up to 1.",
        "Abnar and Zuidema 2020, section 3",
    ),
}


def mean_pattern(
    trace: Trace, layer: int | None = None, *, on_layer: OnLayer | None = None
) -> Array:
    """`[T, T]`: the mean over the heads of a layer, or over all heads of all layers.

    Raises HeadNotFound for a layer that is not there, or has no head left.
    """
    total, n = np.zeros((trace.n_tokens, trace.n_tokens), dtype=np.float32), 0
    for number in _layers(trace, layer, on_layer):
        for head in kept_heads(trace, number):
            total += trace.pattern(number, head)
            n += 1
    _check_any(n, layer)
    total /= n
    return total


def max_pattern(
    trace: Trace, layer: int | None = None, *, on_layer: OnLayer | None = None
) -> Array:
    """`[T, T]`: the largest weight among the heads of a layer, or among all heads of all layers.

    Raises HeadNotFound for a layer that is not there, or has no head left.
    """
    largest, n = np.zeros((trace.n_tokens, trace.n_tokens), dtype=np.float32), 0
    for number in _layers(trace, layer, on_layer):
        for head in kept_heads(trace, number):
            np.maximum(largest, trace.pattern(number, head), out=largest)
            n += 1
    _check_any(n, layer)
    return largest


def rollout(
    trace: Trace,
    n_layers: int | None = None,
    *,
    residual: float = 0.5,
    on_layer: OnLayer | None = None,
) -> Array:
    """`[T, T]`: how much of position i after the first `n_layers` layers stems from position j.

    R = A'_l R with A'_l = (1 - residual) mean_h A_l + residual I, from R = I, over all layers
    unless given (Abnar and Zuidema 2020, section 3). Rows add up to 1. See `AGGREGATES` for what
    it leaves out. A layer without a head passes everything on as it is. Raises ShapeError for a
    number of layers that the model does not have, or a share that is none.
    """
    n = trace.n_layers if n_layers is None else n_layers
    if not 0 <= n <= trace.n_layers or not 0 <= residual <= 1:
        raise ShapeError(
            f"n_layers = {n}, residual = {residual}; expected 0 to {trace.n_layers}, and a share "
            "from 0 to 1."
        )
    mixed = np.eye(trace.n_tokens, dtype=np.float32)
    for layer in range(n):
        if kept_heads(trace, layer):
            step = mean_pattern(trace, layer) @ mixed
            step *= 1 - residual
            mixed *= residual
            mixed += step
        if on_layer is not None:
            on_layer(layer + 1)
    return mixed


def _layers(trace: Trace, layer: int | None, on_layer: OnLayer | None) -> Iterable[int]:
    chosen = range(trace.n_layers) if layer is None else [layer]
    for done, number in enumerate(chosen, 1):
        if not 0 <= number < trace.n_layers:
            last = trace.n_layers - 1
            raise HeadNotFound(
                f"Layer {number} is not in {trace.model}: layers count from 0 to {last}."
            )
        yield number
        if on_layer is not None:
            on_layer(done)


def _check_any(n: int, layer: int | None) -> None:
    if not n:
        where = "This model" if layer is None else f"Layer {layer} of this model"
        raise HeadNotFound(f"{where} has no head left; choose another.")
