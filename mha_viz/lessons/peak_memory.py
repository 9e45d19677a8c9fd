"""Peak memory of attention, measured: explicit attention and the fused kernel.

torch's profiler records every block of memory that a thread allocates or frees, even inside a
kernel. The largest running sum is the peak. Memory that was allocated before the call, such as its
inputs, is not counted.

Explicit attention holds the scores, the masked scores and the pattern at the same time: about
3 H T^2 elements. The fused kernel holds its output and a few tiles, O(T) in total (Dao et al. 2022,
section 3.1 and theorem 1).
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional as F
from torch.profiler import ProfilerActivity, profile, record_function

from mha_viz.attention import attention_scores, causal_mask, masked_softmax

CALL = "a measured call"
_profiler = threading.Lock()  # a process has only one profiler


@dataclass(frozen=True, slots=True)
class PeakMemory:
    """Peak bytes of causal attention over T positions, without its inputs."""

    T: int
    explicit: int
    fused: int


@torch.inference_mode()
def attention_memory(
    lengths: Iterable[int],
    n_heads: int,
    d_head: int,
    *,
    on_length: Callable[[int], None] | None = None,
) -> list[PeakMemory]:
    """The peaks at each length T, for `n_heads` heads of width `d_head` in float32 on the CPU.

    `on_length` is called before each length with the number of finished ones.
    """
    all_T = list(lengths)

    def calls() -> Iterator[Callable[[], object]]:
        for number, T in enumerate(all_T):
            if on_length is not None:
                on_length(number)
            yield from _explicit_and_fused(T, n_heads, d_head)

    peaks = peak_bytes(calls())
    return [PeakMemory(*row) for row in zip(all_T, peaks[0::2], peaks[1::2], strict=True)]


def peak_bytes(calls: Iterable[Callable[[], object]]) -> list[int]:
    """The peak CPU memory of each call in bytes, including its result.

    Allocations of other threads are not counted.
    """
    with _profiler, profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        for call in calls:
            with record_function(CALL):
                call()
    return _peaks(profiled.profiler.kineto_results.events())


def _explicit_and_fused(T: int, n_heads: int, d_head: int) -> Iterator[Callable[[], object]]:
    q, k, v = (torch.randn(1, n_heads, T, d_head) for _ in range(3))
    scale = d_head**-0.5
    yield lambda: masked_softmax(attention_scores(q, k, scale), causal_mask(T, T)) @ v
    yield lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale)


def _peaks(events: Iterable[Any]) -> list[int]:
    """For each range named CALL, the largest running sum of allocated minus freed bytes."""
    calls, allocations = [], []
    for event in events:
        if event.name() == CALL:
            calls.append((event.start_ns(), event.start_ns() + event.duration_ns()))
        elif event.name() == "[memory]":
            allocations.append((event.start_ns(), event.nbytes()))  # below 0 if freed
    allocations.sort(key=lambda allocation: allocation[0])
    peaks = []
    for start, end in sorted(calls):
        held = peak = 0
        for at, n_bytes in allocations:
            if start <= at <= end:
                held += n_bytes
                peak = max(peak, held)
        peaks.append(peak)
    return peaks
