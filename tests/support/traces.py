"""Traces whose patterns are known, and random ones."""

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mha_viz.tokens import Token
from mha_viz.trace import Trace


def sharp_trace(heads: Sequence[Sequence[Sequence[int]]]) -> Trace:
    """A trace whose query i of head h of layer l looks at key heads[l][h][i] alone."""
    L, H, T = np.shape(heads)
    k = np.broadcast_to(np.eye(T, dtype=np.float32), (L, H, T, T)).copy()
    q = 200 * np.eye(T, dtype=np.float32)[np.array(heads)]
    tokens = tuple(Token(n, b"x", "x", "text") for n in range(T))
    return Trace("a test", "", tokens, q, k, k.copy(), np.zeros(3, np.float32), (1.0,) * L)


def without(trace: Trace, *heads: tuple[int, int]) -> Trace:
    """The trace of a model from which these heads have been pruned."""
    parts = {name: getattr(trace, name).copy() for name in "qkv"}
    for part, (layer, head) in itertools.product(parts.values(), heads):
        part[layer, head] = np.nan
    return replace(trace, **parts)
