"""x W_QKV as one product and as a product for each matrix in it; a page shows this code."""

import torch
from torch import Tensor

from mha_viz.attention import MultiHeadAttention


def one_by_one(x: Tensor, W: Tensor, b: Tensor, d_h: int) -> Tensor:
    """`[..., C]` times `[C, n d_h]`: one product for each block of d_h columns."""
    parts = []
    for first in range(0, W.shape[1], d_h):
        columns = slice(first, first + d_h)
        parts.append(x @ W[:, columns] + b[columns])
    return torch.cat(parts, dim=-1)


def at_once(x: Tensor, W: Tensor, b: Tensor) -> Tensor:
    """`[..., C]` times `[C, n d_h]` in one product."""
    return x @ W + b


@torch.inference_mode()
def largest_difference(attention: MultiHeadAttention, x: Tensor) -> float:
    """The largest difference between both ways for a layer's q, k and v of `x` `[B, T, C]`."""
    W, bias = attention.W_QKV.weight.T, attention.W_QKV.bias
    b = torch.zeros_like(W[0]) if bias is None else bias
    difference = one_by_one(x, W, b, attention.d_head) - at_once(x, W, b)
    return float(difference.abs().max())
