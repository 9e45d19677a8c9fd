"""Four ways to run one layer, timed against each other.

Its heads are a list or one batch, with a plain softmax or with torch's fused kernel. All four use
the same weights on the same input and differ only in what their name says.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import cast

import torch
from torch import Tensor
from torch.nn import functional as F

from mha_viz.attention import MultiHeadAttention, causal_mask, repeat_heads
from mha_viz.lessons.walkthrough import random_layer
from mha_viz.reference import HeadByHead, SingleHead, head_by_head, plain_attention

LIST_PLAIN, LIST_FUSED = "list, plain softmax", "list, fused kernel"
BATCH_PLAIN, BATCH_FUSED = "batch, plain softmax", "batch, fused kernel"
WAYS = (LIST_PLAIN, BATCH_PLAIN, LIST_FUSED, BATCH_FUSED)
SCORE_BYTES = 4  # float32


@dataclass(frozen=True, slots=True)
class Spread:
    """The times of several runs, in milliseconds."""

    median: float
    shortest: float
    longest: float

    @classmethod
    def of(cls, runs: Sequence[float]) -> "Spread":
        """The spread of at least one run."""
        return cls(median(runs), min(runs), max(runs))

    def overlaps(self, other: "Spread") -> bool:
        """Whether the two ranges have a time in common, so that their order may be chance."""
        return self.shortest <= other.longest and other.shortest <= self.longest


@dataclass(frozen=True, slots=True)
class Timing:
    """The times of each of WAYS with one number of heads."""

    n_heads: int
    ms: Mapping[str, Spread]
    difference: float  # the largest absolute difference between any way and the first


@torch.inference_mode()
def race(d_model: int, T: int, head_counts: Sequence[int], *, repeats: int = 7) -> Iterator[Timing]:
    """Times the four ways on `[1, T, C]` in float32 for each number of heads.

    Raises ShapeError for a number of heads that does not divide d_model.
    """
    for n_heads in head_counts:
        attention, x = random_layer(d_model, n_heads, 1, T)
        ways = four_ways(attention)
        outputs = [run(x) for run in ways.values()]  # which warms up as well
        difference = max(float((out - outputs[0]).abs().max()) for out in outputs)
        runs: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(repeats):  # in turn, so that a busy moment of the machine hits all of them
            for name, run in ways.items():
                runs[name].append(_milliseconds(run, x))
        yield Timing(n_heads, {name: Spread.of(ms) for name, ms in runs.items()}, difference)


def four_ways(attention: MultiHeadAttention) -> dict[str, Callable[[Tensor], Tensor]]:
    """The layer in each of WAYS, as a function of x `[B, T, C]`."""
    listed = head_by_head(attention)

    def plain_batch(x: Tensor) -> Tensor:
        q, k, v = attention.project(x)
        T = x.shape[1]
        allowed = causal_mask(T, T, x.device) if attention.causal else None
        k, v = (repeat_heads(heads, attention.n_heads) for heads in (k, v))
        return attention.merge(plain_attention(q, k, v, allowed, scale=attention.scale))

    return {
        LIST_PLAIN: listed,
        BATCH_PLAIN: plain_batch,
        LIST_FUSED: lambda x: _fused_list(listed, x),
        BATCH_FUSED: attention,
    }


def score_bytes(n_heads: int, T: int) -> int:
    """Bytes of the scores `[H, T, T]` in float32."""
    return n_heads * T * T * SCORE_BYTES


def registered_parameters(d_model: int, n_heads: int) -> tuple[int, int]:
    """How many parameters torch finds in a list of heads, and how many of them a Python list hides.

    Raises ShapeError if d_model is not a multiple of n_heads.
    """
    with torch.device("meta"):
        layer = HeadByHead(d_model, n_heads)
    found = sum(p.numel() for p in layer.parameters())
    heads = list(layer.heads)
    del layer.heads
    layer.heads = heads  # type: ignore[assignment]
    return found, found - sum(p.numel() for p in layer.parameters())


def _fused_list(listed: HeadByHead, x: Tensor) -> Tensor:
    z = [_fused_head(cast(SingleHead, head), x) for head in listed.heads]
    merged = torch.cat(z, dim=-1)
    out: Tensor = merged if listed.W_O is None else listed.W_O(merged)
    return out


def _fused_head(head: SingleHead, x: Tensor) -> Tensor:
    """The z `[B, T, d_h]` of torch's kernel, which wants an axis of heads."""
    q, k, v = (W(x)[:, None] for W in (head.W_Q, head.W_K, head.W_V))
    z = F.scaled_dot_product_attention(q, k, v, is_causal=head.causal, scale=head.scale)
    return z[:, 0]


def _milliseconds(run: Callable[[Tensor], Tensor], x: Tensor) -> float:
    start = time.perf_counter()
    run(x)
    return 1e3 * (time.perf_counter() - start)
