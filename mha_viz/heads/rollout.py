"""Combined patterns of many heads: mean, maximum, and attention rollout.

Patterns are computed one by one and merged, so only a few `[T, T]` arrays are in memory at a time.
Pruned heads are skipped.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from mha_viz.callbacks import OnLayer
from mha_viz.errors import HeadNotFound, ShapeError
from mha_viz.heads.patterns import kept_heads
from mha_viz.trace import Array, Trace


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A way to combine heads: its formula in KaTeX, and its limitations."""

    title: str
    formula: str
    limits: str
    source: str


AGGREGATES: dict[str, Aggregate] = {
    "mean": Aggregate(
        "Mean",
        r"\bar A_{ij} = \frac{1}{H} \sum_h A^{(h)}_{ij}",
        "All heads count the same, whether the model uses them or not. A head that looks at one "
        "token fades among others that look elsewhere. Rows add up to 1.",
        "",
    ),
    "maximum": Aggregate(
        "Maximum",
        r"M_{ij} = \max_h A^{(h)}_{ij}",
        "Each cell shows its strongest head, which differs from cell to cell. Rows can add up to "
        "more than 1, so they are not distributions.",
        "",
    ),
    "rollout": Aggregate(
        "Attention rollout",
        r"\tilde A_l = \tfrac12 \bar A_l + \tfrac12 I, \qquad R_l = \tilde A_l R_{l-1}, "
        r"\quad R_{-1} = I",
        "It assumes that the residual stream and attention contribute equally, and so do the heads "
        "of a layer; it ignores values, MLPs and LayerNorm. It was designed for encoders: under a "
        "causal mask, paths only lead back, so the mean weight on position 0 tends to grow with "
        "every layer, even without a sink. Rows add up to 1.",
        "Abnar and Zuidema 2020, section 3",
    ),
}


def mean_pattern(
    trace: Trace, layer: int | None = None, *, on_layer: OnLayer | None = None
) -> Array:
    """`[T, T]`: the mean over the heads of a layer (default: over all heads of all layers).

    `on_layer` is called with the number of layers done; an exception that it raises stops the
    work. Raises HeadNotFound for a layer that the model does not have, or whose heads are pruned.
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
    """`[T, T]`: the largest weight among the heads of a layer (default: of all layers).

    `on_layer` and errors are those of `mean_pattern`.
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
    """`[T, T]`: how much of position i after the first `n_layers` layers comes from position j.

    R = A'_l R with A'_l = (1 - residual) mean_h A_l + residual I, from R = I, by default over all
    layers (Abnar and Zuidema 2020, section 3). Rows sum to 1. `AGGREGATES` lists its limitations. A
    layer whose heads are all pruned is skipped. `on_layer` is called with the number of layers
    done. Raises ShapeError for a number of layers that the model does not have, or a `residual`
    outside [0, 1].
    """
    n = trace.n_layers if n_layers is None else n_layers
    if not 0 <= n <= trace.n_layers or not 0 <= residual <= 1:
        raise ShapeError(
            f"n_layers = {n}, residual = {residual}; expected 0 to {trace.n_layers} layers and a "
            "residual from 0 to 1."
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
    layers = range(trace.n_layers) if layer is None else [layer]
    for done, number in enumerate(layers, 1):
        if not 0 <= number < trace.n_layers:
            last = trace.n_layers - 1
            raise HeadNotFound(
                f"Layer {number} is not in {trace.model}, which has layers 0 to {last}."
            )
        yield number
        if on_layer is not None:
            on_layer(done)


def _check_any(n: int, layer: int | None) -> None:
    if not n:
        where = "this model" if layer is None else f"layer {layer} of this model"
        raise HeadNotFound(f"All heads of {where} have been pruned, so there is no pattern.")
