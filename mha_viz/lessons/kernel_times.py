"""The time of a layer's parts over T: its projections, and attention by two kernels.

The projections grow with T, attention with T^2. Explicit attention writes its scores to memory and
torch's fused kernel does not, so the T at which attention outweighs the projections depends on the
kernel.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch

from mha_viz.attention import (
    MultiHeadAttention,
    attention_scores,
    causal_mask,
    masked_softmax,
    repeat_heads,
)
from mha_viz.lessons.race import Spread


@dataclass(frozen=True, slots=True)
class PartTimes:
    """Milliseconds of the parts of a layer with T positions."""

    T: int
    projections: Spread  # W_QKV and W_O
    explicit: Spread  # scores, mask, softmax and weighted sum, one by one
    fused: Spread  # the same in torch's fused kernel


@torch.inference_mode()
def part_times(
    d_model: int,
    n_heads: int,
    lengths: Sequence[int],
    *,
    n_kv_heads: int | None = None,
    d_head: int | None = None,
    repeats: int = 5,
) -> Iterator[PartTimes]:
    """Times the parts at each T, for one sequence in float32 on the CPU with random weights.

    Raises ShapeError if the heads do not fit the layer.
    """
    layer = MultiHeadAttention(d_model, n_heads, n_kv_heads=n_kv_heads, d_head=d_head)
    for T in lengths:
        parts = _parts(layer, T)
        runs: list[list[float]] = [[] for _ in parts]
        for part in parts:
            part()  # a warm-up
        for _ in range(repeats):
            for times, part in zip(runs, parts, strict=True):
                start = time.perf_counter()
                part()
                times.append(1e3 * (time.perf_counter() - start))
        yield PartTimes(T, *map(Spread.of, runs))


def _parts(layer: MultiHeadAttention, T: int) -> list[Callable[[], object]]:
    x = torch.randn(1, T, layer.d_model)
    q, k, v = layer.project(x)
    z = layer.attend(q, k, v)

    def explicit() -> object:
        scores = attention_scores(q, repeat_heads(k, layer.n_heads), layer.scale)
        pattern = masked_softmax(scores, causal_mask(T, T))
        return pattern @ repeat_heads(v, layer.n_heads)

    return [
        lambda: (layer.project(x), layer.merge(z)),
        explicit,
        lambda: layer.attend(q, k, v),
    ]
