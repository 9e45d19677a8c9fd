"""Several rows of weights against one: what the heads look at, and what their mean would say.

With one row for all heads, the mean of theirs, each head still has its own values:

    z_h = w_h v_h        becomes        z_h = (1/H sum_g w_g) v_h
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from mha_viz.attention import MultiHeadAttention, merge_heads, repeat_heads
from mha_viz.trace import Array


@dataclass(frozen=True, slots=True, eq=False)
class Opinions:
    """The patterns of a layer's heads on one sequence, and the layer's output with each."""

    pattern: Array  # [H, T, T]
    output: Array  # [T, C]
    output_of_mean: Array  # [T, C], with the mean row in every head

    @property
    def mean(self) -> Array:
        """`[T, T]`: the mean of the heads' patterns."""
        found: Array = self.pattern.mean(axis=0)
        return found

    @property
    def spread(self) -> Array:
        """`[T]`: for each query, the mean total variation between a head's row and the mean row."""
        found: Array = 0.5 * np.abs(self.pattern - self.mean).sum(axis=2).mean(axis=0)
        return found

    @property
    def most_divided(self) -> int:
        """The query on which the heads agree least."""
        return int(self.spread.argmax())

    def favourites(self, query: int) -> list[tuple[int, int, float]]:
        """The key that each head looks at most: head, key and weight.

        Each key once, with the head that gives it the most; the largest weight comes first.
        """
        best: dict[int, tuple[int, int, float]] = {}
        for head, row in enumerate(self.pattern[:, query]):
            key = int(row.argmax())
            if key not in best or row[key] > best[key][2]:
                best[key] = (head, key, float(row[key]))
        return sorted(best.values(), key=lambda found: -found[2])

    def change(self, query: int) -> float:
        """How far one row for all heads moves the output, relative to its length."""
        moved = np.linalg.norm(self.output_of_mean[query] - self.output[query])
        return float(moved / np.linalg.norm(self.output[query]))


@torch.inference_mode()
def opinions(attention: MultiHeadAttention, x: Tensor) -> Opinions:
    """The opinions of a layer's heads on the first sequence of `x` `[B, T, C]`.

    Raises ShapeError if x does not fit the layer.
    """
    record = attention.explicit(x[:1])
    one = record.pattern.mean(dim=1, keepdim=True)
    z = one.to(record.v.dtype) @ repeat_heads(record.v, attention.n_heads)
    out = attention.W_O(merge_heads(z))
    pattern, output, changed = (
        t[0].float().cpu().numpy() for t in (record.pattern, record.out, out)
    )
    return Opinions(pattern, output, changed)
