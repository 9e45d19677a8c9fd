"""Multi-head attention from scratch: scaled dot products, many heads, two projections.

    Attention(Q, K, V) = softmax(Q K^T / sqrt(d_h)) V            Vaswani et al. 2017, section 3.2.1
    MultiHead(x) = [head_0 ... head_(H-1)] W_O                   Vaswani et al. 2017, section 3.2.2

Axes: B batch, T positions (T_q and T_k where they differ), C = d_model, H heads, d_h = C / H.

The module is made of five steps, and two ways lead through them. `explicit` shows every step and
returns it; `forward` hands the middle to torch's fused kernel, which never holds the [T_q, T_k]
pattern of a head. Both compute the same function. Neither stores anything on the module.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mha_viz.errors import ShapeError


@dataclass(frozen=True, slots=True)
class AttentionRecord:
    """Every intermediate of one call: see the shapes, in the order in which they arise."""

    q: Tensor  # [B, H, T_q, d_h]
    k: Tensor  # [B, H, T_k, d_h]
    v: Tensor  # [B, H, T_k, d_h]
    scores: Tensor  # [B, H, T_q, T_k], scaled, before the mask and the softmax
    pattern: Tensor  # [B, H, T_q, T_k], after the softmax; rows add up to 1 (or 0: all masked)
    z: Tensor  # [B, H, T_q, d_h], before the head gate and W_O
    out: Tensor  # [B, T_q, C]


class MultiHeadAttention(nn.Module):
    """Multi-head attention over `[B, T, C]`, for self-attention and cross-attention.

    `causal` hides the keys whose position is beyond the query's (both count from 0).
    `dropout` acts on the pattern, in training only.
    `scale` multiplies q @ k^T; 1 / sqrt(d_h) unless given.

    Raises ShapeError where d_model does not divide into n_heads.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        bias: bool = True,
        causal: bool = True,
        dropout: float = 0.0,
        scale: float | None = None,
    ) -> None:
        super().__init__()
        if n_heads < 1 or d_model < 1 or d_model % n_heads:
            raise ShapeError(
                f"d_model = {d_model} does not divide into n_heads = {n_heads} heads of equal "
                f"width; {_nearest_head_counts(d_model, n_heads)}"
            )
        if not 0.0 <= dropout < 1.0:
            raise ShapeError(f"dropout = {dropout} is not a probability in [0, 1).")
        self.d_model = d_model
        self.n_heads = n_heads
        self.d_head = d_model // n_heads
        self.causal = causal
        self.dropout = dropout
        self.scale = self.d_head**-0.5 if scale is None else scale
        # One product for q, k and v of all heads: three thirds of rows, each H blocks of d_h.
        self.W_QKV = nn.Linear(d_model, 3 * d_model, bias=bias)
        self.W_O = nn.Linear(d_model, d_model, bias=bias)

    def forward(
        self,
        x: Tensor,
        kv: Tensor | None = None,
        *,
        mask: Tensor | None = None,
        head_gate: Tensor | None = None,
    ) -> Tensor:
        """The output `[B, T_q, C]`, through the fused kernel.

        `x` `[B, T_q, C]` asks. `kv` `[B, T_k, C]` is read, and is `x` itself unless given.
        `mask` is boolean, True where a query may look: `[T_q, T_k]`, `[B, T_q, T_k]` or
        `[B, H, T_q, T_k]`. `head_gate` `[H]` or `[B, H]` scales each head's z before W_O.

        Raises ShapeError, with the shapes, for anything else.
        """
        q, k, v = self.project(x, kv)
        return self.merge(self.attend(q, k, v, mask=mask), head_gate=head_gate)

    def explicit(
        self,
        x: Tensor,
        kv: Tensor | None = None,
        *,
        mask: Tensor | None = None,
        head_gate: Tensor | None = None,
    ) -> AttentionRecord:
        """Every step of `forward`, one after the other, as an `AttentionRecord`."""
        q, k, v = self.project(x, kv)
        allowed = self._allowed(q, k, mask)
        scores = attention_scores(q, k, self.scale)
        pattern = masked_softmax(scores, allowed)
        kept = F.dropout(pattern, self.dropout, self.training)
        z = kept.to(v.dtype) @ v
        out = self.merge(z, head_gate=head_gate)
        return AttentionRecord(q=q, k=k, v=v, scores=scores, pattern=pattern, z=z, out=out)

    def project(self, x: Tensor, kv: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """The q `[B, H, T_q, d_h]`, k and v `[B, H, T_k, d_h]`: one matrix product an input."""
        self._check_input("x", x)
        if kv is None:
            q, k, v = self.W_QKV(x).chunk(3, dim=-1)
        else:
            self._check_input("kv", kv)
            if kv.shape[0] != x.shape[0]:
                raise ShapeError(
                    f"x has shape {list(x.shape)} and kv {list(kv.shape)}; "
                    "they must hold the same number of sequences B."
                )
            C, W, b = self.d_model, self.W_QKV.weight, self.W_QKV.bias
            q = F.linear(x, W[:C], None if b is None else b[:C])
            k, v = F.linear(kv, W[C:], None if b is None else b[C:]).chunk(2, dim=-1)
        return (
            split_heads(q, self.n_heads),
            split_heads(k, self.n_heads),
            split_heads(v, self.n_heads),
        )

    def attend(self, q: Tensor, k: Tensor, v: Tensor, *, mask: Tensor | None = None) -> Tensor:
        """The z `[B, H, T_q, d_h]`, through `scaled_dot_product_attention`: it holds no pattern."""
        dropout = self.dropout if self.training else 0.0
        if mask is None:
            return F.scaled_dot_product_attention(
                q, k, v, is_causal=self.causal, dropout_p=dropout, scale=self.scale
            )
        allowed = self._allowed(q, k, mask)
        assert allowed is not None
        # A row without a single key has no softmax. It is let through whole and its z set to
        # zero afterwards, so that neither the value nor its gradient is ever NaN.
        sees_any = allowed.any(dim=-1, keepdim=True)
        z = F.scaled_dot_product_attention(
            q, k, v, attn_mask=allowed | ~sees_any, dropout_p=dropout, scale=self.scale
        )
        return z * sees_any

    def merge(self, z: Tensor, *, head_gate: Tensor | None = None) -> Tensor:
        """`[B, H, T_q, d_h]` -> gate each head -> heads side by side -> W_O `[B, T_q, C]`."""
        if head_gate is not None:
            allowed_shapes = ([self.n_heads], [z.shape[0], self.n_heads])
            if list(head_gate.shape) not in allowed_shapes:
                raise ShapeError(
                    f"head_gate has shape {list(head_gate.shape)}; expected [H] = "
                    f"{allowed_shapes[0]} or [B, H] = {allowed_shapes[1]}."
                )
            z = z * head_gate.to(z.dtype)[..., None, None]
        out: Tensor = self.W_O(merge_heads(z))
        return out

    def _check_input(self, name: str, x: Tensor) -> None:
        if x.dim() != 3 or x.shape[-1] != self.d_model:
            raise ShapeError(
                f"{name} has shape {list(x.shape)}; expected [B, T, C] with C = {self.d_model}."
            )

    def _allowed(self, q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor | None:
        """The causal rule and the given mask as one boolean tensor, or None: all may be seen."""
        B, H, T_q, T_k = *q.shape[:3], k.shape[2]
        allowed = causal_mask(T_q, T_k, q.device) if self.causal else None
        if mask is None:
            return allowed
        given = expand_mask(mask, B, H, T_q, T_k)
        return given if allowed is None else given & allowed


def split_heads(x: Tensor, n_heads: int) -> Tensor:
    """`[B, T, C]` -> view `[B, T, H, d_h]` -> transpose `[B, H, T, d_h]`: no copy is made."""
    B, T, C = x.shape
    return x.view(B, T, n_heads, C // n_heads).transpose(1, 2)


def merge_heads(z: Tensor) -> Tensor:
    """`[B, H, T, d_h]` -> transpose `[B, T, H, d_h]` -> reshape `[B, T, C]`: here is the copy."""
    B, H, T, d_h = z.shape
    return z.transpose(1, 2).reshape(B, T, H * d_h)


def attention_scores(q: Tensor, k: Tensor, scale: float) -> Tensor:
    """Scaled dot products `[B, H, T_q, T_k]`, in float32 at least: float16 would overflow."""
    dtype = torch.promote_types(q.dtype, torch.float32)
    return (q.to(dtype) @ k.to(dtype).transpose(-2, -1)) * scale


def masked_softmax(scores: Tensor, allowed: Tensor | None) -> Tensor:
    """Softmax over the allowed keys; a forbidden key weighs exactly 0, and so does an empty row."""
    if allowed is None:
        return scores.softmax(dim=-1)
    # The lowest finite number rather than -inf: a row without a key would turn into NaN.
    lowest = torch.finfo(scores.dtype).min
    return scores.masked_fill(~allowed, lowest).softmax(dim=-1).masked_fill(~allowed, 0.0)


def causal_mask(T_q: int, T_k: int, device: torch.device | None = None) -> Tensor:
    """Boolean `[T_q, T_k]`: True where the key's position is not beyond the query's."""
    return torch.ones(T_q, T_k, dtype=torch.bool, device=device).tril()


def expand_mask(mask: Tensor, B: int, H: int, T_q: int, T_k: int) -> Tensor:
    """A mask of `[T_q, T_k]`, `[B, T_q, T_k]` or `[B, H, T_q, T_k]`, with four axes.

    B and H are 1 where they were not given. Raises ShapeError for another shape and for numbers
    in place of booleans.
    """
    if mask.dtype != torch.bool:
        raise ShapeError(
            f"The mask holds {mask.dtype}; expected torch.bool, True where a query may look."
        )
    full = mask
    if mask.dim() == 2:
        full = mask[None, None]
    elif mask.dim() == 3:
        full = mask[:, None]
    fits = full.dim() == 4 and list(full.shape[2:]) == [T_q, T_k]
    if not (fits and full.shape[0] in (1, B) and full.shape[1] in (1, H)):
        raise ShapeError(
            f"The mask has shape {list(mask.shape)}; expected [T_q, T_k] = {[T_q, T_k]}, "
            f"[B, T_q, T_k] = {[B, T_q, T_k]} or [B, H, T_q, T_k] = {[B, H, T_q, T_k]}."
        )
    return full


def _nearest_head_counts(d_model: int, n_heads: int) -> str:
    if d_model < 1:
        return "d_model must be at least 1."
    divisors = [n for n in range(1, d_model + 1) if d_model % n == 0]
    nearest = sorted(sorted(divisors, key=lambda n: (abs(n - n_heads), n))[:2])
    return f"numbers of heads that fit nearby: {' or '.join(map(str, nearest))}."
