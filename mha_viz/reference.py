"""Other implementations of `attention.MultiHeadAttention`, for lessons and for tests.

    head_h = softmax(q_h k_h^T / sqrt(d_h)) v_h                  Vaswani et al. 2017, section 3.2.1
    MultiHead(x) = [head_0 ... head_(H-1)] W_O                   Vaswani et al. 2017, section 3.2.2

`HeadByHead` has one module per head; `SeparateProjections` has separate matrices for q, k and v.
`multi_head_attention` has no weights, and `numpy_attention` does not use torch. With equal weights,
all of them compute the same function as the fused module. Axes are named as in attention.py.
"""

from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from mha_viz.attention import (
    MultiHeadAttention,
    attention_scores,
    causal_mask,
    expand_mask,
    head_width,
    masked_softmax,
    merge_heads,
    split_heads,
)
from mha_viz.errors import ShapeError

Array = NDArray[np.floating[Any]]


def plain_attention(
    q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None = None, *, scale: float | None = None
) -> Tensor:
    """One head: softmax(q k^T / sqrt(d_h)) v, as `[..., T_q, d_v]` (Vaswani et al. 2017, eq. 1).

    `q` is `[..., T_q, d_h]`, `k` `[..., T_k, d_h]` and `v` `[..., T_k, d_v]`. `allowed` is boolean
    `[..., T_q, T_k]`, True where a query may look; a query without an allowed key gets zeros.
    """
    scores = attention_scores(q, k, q.shape[-1] ** -0.5 if scale is None else scale)
    return masked_softmax(scores, allowed).to(v.dtype) @ v


class SingleHead(nn.Module):
    """A single head: its own W_Q, W_K and W_V, each from `d_in` channels to `d_head`."""

    def __init__(
        self,
        d_in: int,
        d_head: int,
        *,
        bias: bool = True,
        causal: bool = True,
        scale: float | None = None,
    ) -> None:
        super().__init__()
        self.W_Q = nn.Linear(d_in, d_head, bias=bias)
        self.W_K = nn.Linear(d_in, d_head, bias=bias)
        self.W_V = nn.Linear(d_in, d_head, bias=bias)
        self.causal = causal
        self.scale = scale

    def forward(self, x: Tensor) -> Tensor:
        """The head's z `[B, T, d_h]` for `x` `[B, T, d_in]`. Raises ShapeError."""
        _check_input(x, self.W_Q.in_features)
        T = x.shape[1]
        allowed = causal_mask(T, T, x.device) if self.causal else None
        return plain_attention(self.W_Q(x), self.W_K(x), self.W_V(x), allowed, scale=self.scale)


class HeadByHead(nn.Module):
    """Multi-head attention as a list of heads that run one after the other.

    Their outputs are concatenated and multiplied by W_O; without `projection` they are only
    concatenated. `d_head` is C / H by default. Raises ShapeError if d_model is not a multiple of
    n_heads.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        d_head: int | None = None,
        bias: bool = True,
        causal: bool = True,
        projection: bool = True,
        scale: float | None = None,
    ) -> None:
        super().__init__()
        if d_head is None:
            d_head = head_width(d_model, n_heads)
        elif n_heads < 1 or d_head < 1:
            raise ShapeError(
                f"n_heads = {n_heads}, d_head = {d_head}; both must be at least 1 here."
            )
        self.heads = nn.ModuleList(
            SingleHead(d_model, d_head, bias=bias, causal=causal, scale=scale)
            for _ in range(n_heads)
        )
        self.W_O = nn.Linear(n_heads * d_head, d_model, bias=bias) if projection else None

    def forward(self, x: Tensor) -> Tensor:
        """The output `[B, T, C]` for `x` `[B, T, C]`, or `[B, T, H d_h]` without W_O.

        Raises ShapeError for an x of the wrong width.
        """
        z = torch.cat([head(x) for head in self.heads], dim=-1)
        out: Tensor = z if self.W_O is None else self.W_O(z)
        return out


@torch.no_grad()
def head_by_head(attention: MultiHeadAttention) -> HeadByHead:
    """The same function as a list of heads, with copies of the weights and without dropout.

    Query heads that share a key/value head each get a copy of it. Raises ShapeError for a module
    whose heads are all pruned.
    """
    H, G, d_h = attention.n_heads, attention.n_kv_heads, attention.d_head
    weight, bias = attention.W_QKV.weight, attention.W_QKV.bias
    listed = HeadByHead(
        attention.d_model, H, d_head=d_h, bias=bias is not None,
        causal=attention.causal, scale=attention.scale,
    ).to(weight)  # fmt: skip
    for h, module in enumerate(listed.heads):
        head, g = cast(SingleHead, module), h // (H // G)
        # The rows of W_QKV are H blocks of d_h for q, then G for k and G for v.
        blocks = ((head.W_Q, h), (head.W_K, H + g), (head.W_V, H + G + g))
        for linear, block in blocks:
            rows = slice(block * d_h, (block + 1) * d_h)
            linear.weight.copy_(weight[rows])
            if bias is not None:
                linear.bias.copy_(bias[rows])
    assert listed.W_O is not None
    listed.W_O.load_state_dict(attention.W_O.state_dict())
    return listed


def multi_head_attention(
    q: Tensor, k: Tensor, v: Tensor, num_heads: int, mask: Tensor | None = None
) -> Tensor:
    """The merged z `[B, T_q, d]` of inputs that are already projected; no weights, no W_O.

    `q` is `[B, T_q, d]`, `k` and `v` are `[B, T_k, d]`. `mask` is boolean, True where a query may
    look: `[B, T_q, T_k]`, or `[T_q, T_k]` for all sequences. A query without an allowed key gets
    zeros.

    Raises ShapeError, with the shapes, for inputs that do not fit each other or the heads.
    """
    fits = q.dim() == k.dim() == 3 and k.shape == v.shape
    if not fits or (q.shape[0], q.shape[2]) != (k.shape[0], k.shape[2]):
        raise ShapeError(
            f"q has shape {list(q.shape)}, k {list(k.shape)} and v {list(v.shape)}; expected "
            "[B, T_q, d], [B, T_k, d] and [B, T_k, d]."
        )
    B, T_q, d = q.shape
    d_h = head_width(d, num_heads)
    allowed = None if mask is None else expand_mask(mask, B, num_heads, T_q, k.shape[1])
    q, k, v = (split_heads(x, num_heads, d_h) for x in (q, k, v))
    return merge_heads(plain_attention(q, k, v, allowed))


class SeparateProjections(nn.Module):
    """Multi-head attention with separate matrices for q, k, v and the output, without biases.

    The input width `d_in` may differ from the output width `d_out` = H d_h. Raises ShapeError if
    d_out is not a multiple of n_heads.
    """

    def __init__(self, d_in: int, d_out: int, n_heads: int, *, causal: bool = True) -> None:
        super().__init__()
        head_width(d_out, n_heads)
        self.n_heads = n_heads
        self.causal = causal
        self.W_Q = nn.Linear(d_in, d_out, bias=False)
        self.W_K = nn.Linear(d_in, d_out, bias=False)
        self.W_V = nn.Linear(d_in, d_out, bias=False)
        self.W_O = nn.Linear(d_out, d_out, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """The output `[B, T, d_out]` for `x` `[B, T, d_in]`.

        Raises ShapeError for an x of the wrong width.
        """
        _check_input(x, self.W_Q.in_features)
        T = x.shape[1]
        mask = causal_mask(T, T, x.device) if self.causal else None
        z = multi_head_attention(self.W_Q(x), self.W_K(x), self.W_V(x), self.n_heads, mask)
        out: Tensor = self.W_O(z)
        return out


def numpy_attention(
    x: Array,
    W_QKV: Array,
    b_QKV: Array | None,
    W_O: Array,
    b_O: Array | None,
    n_heads: int,
    mask: Array | None = None,
) -> tuple[Array, Array]:
    """The output `[B, T, C]` and the pattern `[B, H, T, T]`, in NumPy.

    `x` is `[B, T, C]`; the weights are laid out as in torch: `W_QKV` `[3 H d_h, C]` and `W_O`
    `[C, H d_h]`. `mask` is added to the scores before the softmax: 0 where a query may look, -inf
    elsewhere (see `additive_mask`). It broadcasts to `[B, H, T, T]`.

    Raises ShapeError, with the shapes, for weights that do not fit x or the heads.
    """
    d_h = _numpy_head_width(x, W_QKV, W_O, n_heads)
    B, T, _ = x.shape
    qkv = np.einsum("btc,rc->btr", x, W_QKV) + (0.0 if b_QKV is None else b_QKV)
    q, k, v = np.moveaxis(qkv.reshape(B, T, 3, n_heads, d_h), 2, 0)
    scores = np.einsum("bqhd,bkhd->bhqk", q, k) * d_h**-0.5
    pattern = _numpy_softmax(scores if mask is None else scores + mask)
    z = np.einsum("bhqk,bkhd->bqhd", pattern, v).reshape(B, T, n_heads * d_h)
    out = np.einsum("btr,cr->btc", z, W_O) + (0.0 if b_O is None else b_O)
    return out, pattern


def additive_mask(allowed: NDArray[np.bool_]) -> Array:
    """A mask to add to scores: 0 where `allowed` is True and -inf where it is False."""
    return np.where(allowed, 0.0, -np.inf)


def head_reach(attention: MultiHeadAttention, with_projection: bool = True) -> Tensor:
    """How strongly each head can write to each output channel, `[H, C]`, at least 0.

    An entry is the norm of the d_h weights of W_O from head h's z to channel c. Without the
    projection the heads are only concatenated, so each channel belongs to one head: `[H, H d_h]` of
    ones and zeros.
    """
    H, d_h = attention.n_heads, attention.d_head
    weight = attention.W_O.weight.detach()
    if not with_projection:
        weight = torch.eye(H * d_h, dtype=weight.dtype, device=weight.device)
    reach: Tensor = weight.view(len(weight), H, d_h).norm(dim=-1).T
    return reach


def _check_input(x: Tensor, d_in: int) -> None:
    if x.dim() != 3 or x.shape[-1] != d_in:
        raise ShapeError(f"x has shape {list(x.shape)}; expected [B, T, C] with C = {d_in}.")


def _numpy_head_width(x: Array, W_QKV: Array, W_O: Array, n_heads: int) -> int:
    """The d_h of the weights. Raises ShapeError if they do not fit x or each other."""
    d_h = W_QKV.shape[0] // (3 * n_heads) if n_heads > 0 else 0
    width, C = n_heads * d_h, x.shape[-1]
    if d_h < 1 or x.ndim != 3 or W_QKV.shape != (3 * width, C) or W_O.shape[1:] != (width,):
        raise ShapeError(
            f"x has shape {list(x.shape)}, W_QKV {list(W_QKV.shape)} and W_O {list(W_O.shape)}; "
            f"expected [B, T, C], [3 H d_h, C] and [C, H d_h] with H = n_heads = {n_heads}."
        )
    return d_h


def _numpy_softmax(scores: Array) -> Array:
    """Softmax over the last axis; a row that is -inf throughout becomes zeros."""
    top = scores.max(axis=-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isneginf(top), 0.0, top))
    total = weights.sum(axis=-1, keepdims=True)
    pattern: Array = weights / np.where(total == 0.0, 1.0, total)
    return pattern
