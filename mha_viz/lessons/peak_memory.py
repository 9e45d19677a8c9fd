"""The memory that attention takes at its worst moment: the explicit way and the fused kernel.

torch's profiler notes each piece of memory that a thread takes and gives back, those inside a
kernel included. Added up in their order, the largest sum is the peak. What was there before the
call, its inputs among it, is not counted.

The explicit way holds the scores, the masked scores and the pattern at once: about 3 H T^2
numbers. The fused kernel holds its output and a few tiles, O(T) in all (Dao et al. 2022,
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
_one_at_a_time = threading.Lock()  # a process has a single profiler


@dataclass(frozen=True, slots=True)
class Use:
    """Bytes at the worst moment of causal attention over T positions, without its inputs."""

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
) -> list[Use]:
    """The use at each length T: `n_heads` heads of width `d_head`, float32, on the CPU.

    `on_length` is told how many lengths are done, before each. Both ways run one after the other.
    """
    given = list(lengths)

    def calls() -> Iterator[Callable[[], object]]:
        for number, T in enumerate(given):
            if on_length is not None:
                on_length(number)
            yield from _both_ways(T, n_heads, d_head)

    peaks = peak_bytes(calls())
    return [Use(*each) for each in zip(given, peaks[0::2], peaks[1::2], strict=True)]


def peak_bytes(calls: Iterable[Callable[[], object]]) -> list[int]:
    """The most bytes on the CPU that each call holds at once, its result included.

    What other threads take meanwhile is not counted.
    """
    with _one_at_a_time, profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        for call in calls:
            with record_function(CALL):
                call()
    return _peaks(seen.profiler.kineto_results.events())


def _both_ways(T: int, n_heads: int, d_head: int) -> Iterator[Callable[[], object]]:
    q, k, v = (torch.randn(1, n_heads, T, d_head) for _ in range(3))
    scale = d_head**-0.5
    yield lambda: masked_softmax(attention_scores(q, k, scale), causal_mask(T, T)) @ v
    yield lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale)


def _peaks(events: Iterable[Any]) -> list[int]:
    """For each range named CALL, the largest sum of what was taken less what was given back."""
    calls, pieces = [], []
    for event in events:
        if event.name() == CALL:
            calls.append((event.start_ns(), event.start_ns() + event.duration_ns()))
        elif event.name() == "[memory]":
            pieces.append((event.start_ns(), event.nbytes()))
    pieces.sort(key=lambda piece: piece[0])
    peaks = []
    for start, end in sorted(calls):
        held = peak = 0
        for at, n_bytes in pieces:
            if start <= at <= end:
                held += n_bytes
                peak = max(peak, held)
        peaks.append(peak)
    return peaks
