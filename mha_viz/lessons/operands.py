"""The numbers behind each product of one attention layer: the operands, and what they add up to.

    q k v = x W_QKV + b      s_ij = q_i . k_j / sqrt(d_h)      z_i = sum_j w_ij v_j
    output = sum_h z_h W_O[h] + b_O                              Vaswani et al. 2017, section 3.2

All numbers are those of the module itself, from one call of `explicit`. Query head h reads
key/value head h // (H / G), so with shared keys several heads have the same k and v. Axes are named
as in attention.py.
"""

from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mha_viz.attention import AttentionRecord, MultiHeadAttention
from mha_viz.network import Network

Numbers = NDArray[np.float32]
Part = Literal["q", "k", "v"]
PARTS: tuple[Part, ...] = ("q", "k", "v")


@dataclass(frozen=True, slots=True, eq=False)
class Score:
    """One score: a row of q and a row of k, element by element."""

    q: Numbers  # [d_h]
    k: Numbers  # [d_h]
    products: Numbers  # [d_h]
    sums: Numbers  # [d_h]: the sum of the products up to each element
    scale: float
    score: float  # as the module computed it

    @property
    def total(self) -> float:
        """The dot product q . k."""
        return float(self.sums[-1])

    @property
    def largest(self) -> int:
        """The element whose product is largest in magnitude."""
        return int(np.abs(self.products).argmax())


@dataclass(frozen=True, slots=True, eq=False)
class WeightedValues:
    """One row of z: the weights of a query, and the rows of v that they multiply."""

    weights: Numbers  # [T]
    values: Numbers  # [T, d_h]
    z: Numbers  # [d_h], as the module computed it
    n_seen: int  # keys that the query may look at: the first n_seen


@dataclass(frozen=True, slots=True, eq=False)
class Contributions:
    """What each head adds to the output at one position, and what that does to the stream."""

    z: Numbers  # [H, d_h]
    by_head: Numbers  # [H, C]: z_h @ W_O[h]
    bias: Numbers  # [C]; zeros if W_O has none
    output: Numbers  # [C], as the module computed it
    before: Numbers  # [C]: the residual stream before attention adds to it
    after: Numbers  # [C]

    @property
    def lengths(self) -> Numbers:
        """`[H]`: the norm of what each head adds."""
        found: Numbers = np.linalg.norm(self.by_head, axis=1)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Operands:
    """Every factor and every product of one layer on one sequence, as float32 on the CPU."""

    attention: MultiHeadAttention
    x: Numbers  # [T, C]
    stream: Numbers  # [T, C]: the residual stream before the layer
    q: Numbers  # [H, T, d_h]
    k: Numbers  # [G, T, d_h]
    v: Numbers  # [G, T, d_h]
    scores: Numbers  # [H, T, T], scaled, before the mask
    pattern: Numbers  # [H, T, T]
    z: Numbers  # [H, T, d_h]
    output: Numbers  # [T, C]

    @property
    def W_QKV(self) -> Numbers:
        """`[C, (H + 2G) d_h]`: the matrix as formulas write it; torch stores its transpose."""
        return _numbers(self.attention.W_QKV.weight.T)

    @property
    def W_O(self) -> Numbers:
        """`[H, d_h, C]`: the rows of W_O that belong to each head."""
        return _numbers(self.attention.W_O_by_head)

    @property
    def qkv(self) -> Numbers:
        """`[T, (H + 2G) d_h]`: the fused product as it lies, q of all heads, then k, then v."""
        heads = np.concatenate([self.q, self.k, self.v])
        return np.ascontiguousarray(heads.swapaxes(0, 1)).reshape(len(self.x), -1)

    @property
    def n_masked(self) -> int:
        """How many scores of a head the mask hides."""
        T = len(self.x)
        return T * (T - 1) // 2 if self.attention.causal else 0

    def kv_head(self, head: int) -> int:
        """The key/value head that a query head reads."""
        return head * self.attention.n_kv_heads // self.attention.n_heads

    def block(self, part: Part, head: int) -> int:
        """Which block of d_h columns of W_QKV makes q, k or v of this query head."""
        H, G = self.attention.n_heads, self.attention.n_kv_heads
        return head if part == "q" else H + self.kv_head(head) + (G if part == "v" else 0)

    def score(self, head: int, query: int, key: int) -> Score:
        """The score of a query on a key."""
        q, k = self.q[head, query], self.k[self.kv_head(head), key]
        products = q * k
        sums = products.cumsum(dtype=np.float64).astype(np.float32)
        scale, score = self.attention.scale, float(self.scores[head, query, key])
        return Score(q, k, products, sums, scale, score)

    def weighted_values(self, head: int, query: int) -> WeightedValues:
        """The row of z of a query."""
        T = len(self.x)
        n_seen = query + 1 if self.attention.causal else T
        values = self.v[self.kv_head(head)]
        return WeightedValues(self.pattern[head, query], values, self.z[head, query], n_seen)

    def contributions(self, position: int) -> Contributions:
        """What every head adds at a position."""
        z = self.z[:, position]
        bias = self.attention.W_O.bias
        return Contributions(
            z=z,
            by_head=np.einsum("hi,hic->hc", z, self.W_O),
            bias=np.zeros_like(self.output[0]) if bias is None else _numbers(bias),
            output=self.output[position],
            before=self.stream[position],
            after=self.stream[position] + self.output[position],
        )


@torch.inference_mode()
def operands_of(attention: MultiHeadAttention, x: Tensor, stream: Tensor) -> Operands:
    """The operands of `attention` on the first sequence of `x` `[B, T, C]`.

    `stream` `[B, T, C]` is the residual stream that the output is added to. Raises ShapeError if x
    does not fit the layer.
    """
    record: AttentionRecord = attention.explicit(x[:1])
    names = ("q", "k", "v", "scores", "pattern", "z")
    tensors: dict[str, Any] = {name: _numbers(getattr(record, name)[0]) for name in names}
    x, stream, out = x[0], stream[0], record.out[0]
    return Operands(attention, _numbers(x), _numbers(stream), output=_numbers(out), **tensors)


@torch.inference_mode()
def operands_of_layer(network: Network, ids: Tensor, layer: int) -> Operands:
    """The operands of a layer of a network on ids `[1, T]`. Raises ShapeError."""
    stream = next(islice(network.residuals(ids), layer, None))
    block = network.blocks[layer]
    return operands_of(block.attn, block.attention_input(stream), stream)


def _numbers(tensor: Tensor) -> Numbers:
    array: Numbers = tensor.detach().float().cpu().contiguous().numpy()
    return array
