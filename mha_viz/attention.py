"""Multi-head attention from scratch: scaled dot products, many heads, two projections.

    Attention(Q, K, V) = softmax(Q K^T / sqrt(d_h)) V            Vaswani et al. 2017, section 3.2.1
    MultiHead(x) = [head_0 ... head_(H-1)] W_O                   Vaswani et al. 2017, section 3.2.2

Axes: B batch, T positions (T_q and T_k where they differ), C = d_model, H heads, d_h = C / H,
G key/value heads. G = H is multi-head attention; with fewer, H / G query heads share each key/value
head: grouped-query attention (Ainslie et al. 2023). G = 1 is multi-query (Shazeer 2019).

The module has five steps: project, score, softmax, weight the values, merge. `explicit` computes
them one by one and returns each; `forward` leaves the middle three to torch's fused kernel, which
avoids holding the [T_q, T_k] pattern of a head. Both compute the same function, and neither stores
anything on the module.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mha_viz.errors import ShapeError


@dataclass(frozen=True, slots=True)
class AttentionRecord:
    """Every intermediate tensor of one call, in the order of computation."""

    q: Tensor  # [B, H, T_q, d_h]
    k: Tensor  # [B, G, T_k, d_h]
    v: Tensor  # [B, G, T_k, d_h]
    scores: Tensor  # [B, H, T_q, T_k], scaled, before the mask and the softmax
    pattern: Tensor  # [B, H, T_q, T_k], after the softmax; a row sums to 1, or to 0 if all masked
    z: Tensor  # [B, H, T_q, d_h], before the head gate and W_O
    out: Tensor  # [B, T_q, C]


class KVCache:
    """Keys and values of the positions so far, `[B, G, T, d_h]` each, with room for `size`.

    The caller owns the cache. A module that receives one reads it and appends the new positions.
    """

    def __init__(self, batch: int, n_kv_heads: int, size: int, d_head: int, like: Tensor) -> None:
        self._k = like.new_empty(batch, n_kv_heads, size, d_head)
        self._v = torch.empty_like(self._k)
        self.length = 0

    @property
    def size(self) -> int:
        """The number of positions that fit."""
        return self._k.shape[2]

    @property
    def n_bytes(self) -> int:
        """The size of the keys and values so far, in bytes."""
        B, G, _, d_h = self._k.shape
        return 2 * B * G * self.length * d_h * self._k.element_size()

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Adds k and v `[B, G, T_new, d_h]`; returns those of all positions, `[B, G, T, d_h]`.

        Raises ShapeError if they do not fit.
        """
        B, G, size, d_h = self._k.shape
        start, end = self.length, self.length + k.shape[2]
        if end > size or k.shape != v.shape or list(k.shape) != [B, G, end - start, d_h]:
            raise ShapeError(
                f"k {list(k.shape)} and v {list(v.shape)} do not fit a cache of "
                f"{[B, G, size, d_h]} that holds {start} positions."
            )
        self._k[:, :, start:end] = k
        self._v[:, :, start:end] = v
        self.length = end
        return self._k[:, :, :end], self._v[:, :, :end]


class Projection(nn.Linear):
    """A linear map that may be empty, as in a layer whose heads are all pruned."""

    def reset_parameters(self) -> None:
        """Initialises the weights at random, unless the map is empty."""
        if self.weight.numel():
            super().reset_parameters()
        elif self.bias is not None:
            nn.init.zeros_(self.bias)


class MultiHeadAttention(nn.Module):
    """Multi-head attention over `[B, T, C]`, for self-attention and cross-attention.

    `n_kv_heads` is G, by default n_heads. `d_head` is C / H by default; in a layer with pruned
    heads, H x d_h is less than C.
    `causal` masks the keys after the query's position. Positions count from 0; with a cache, those
    of new queries start at its length.
    `dropout` acts on the pattern, in training only.
    `scale` multiplies q @ k^T; by default it is 1 / sqrt(d_h).

    Raises ShapeError if d_model is not a multiple of n_heads, or n_heads not of n_kv_heads.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        n_kv_heads: int | None = None,
        d_head: int | None = None,
        bias: bool = True,
        causal: bool = True,
        dropout: float = 0.0,
        scale: float | None = None,
    ) -> None:
        super().__init__()
        if d_head is None:
            d_head = head_width(d_model, n_heads)
        elif d_head < 1 or n_heads < 0:
            raise ShapeError(
                f"n_heads = {n_heads}, d_head = {d_head}; n_heads must be at least 0 and d_head at "
                "least 1."
            )
        G = n_heads if n_kv_heads is None else n_kv_heads
        if n_heads != G and (G < 1 or n_heads % G):
            raise ShapeError(
                f"n_heads = {n_heads} query heads cannot share n_kv_heads = {G} key/value heads "
                f"evenly; {_nearest_head_counts(n_heads, G)}"
            )
        if not 0.0 <= dropout < 1.0:
            raise ShapeError(f"dropout = {dropout}; expected a probability in [0, 1).")
        self.d_model = d_model
        self.n_heads = n_heads
        self.n_kv_heads = G
        self.d_head = d_head
        self.causal = causal
        self.dropout = dropout
        self.scale = self.d_head**-0.5 if scale is None else scale
        # One fused projection: H blocks of d_h rows for q, then G for k and G for v.
        self.W_QKV = Projection(d_model, (n_heads + 2 * G) * d_head, bias=bias)
        self.W_O = Projection(n_heads * d_head, d_model, bias=bias)

    def forward(
        self,
        x: Tensor,
        kv: Tensor | None = None,
        *,
        mask: Tensor | None = None,
        head_gate: Tensor | None = None,
        cache: KVCache | None = None,
    ) -> Tensor:
        """The output `[B, T_q, C]`, computed with the fused kernel.

        Queries come from `x` `[B, T_q, C]`; keys and values come from `kv` `[B, T_k, C]`, by
        default `x` itself.
        `mask` is boolean, True where a query may look: `[T_q, T_k]`, `[B, T_q, T_k]` or
        `[B, H, T_q, T_k]`. `head_gate` `[H]` or `[B, H]` scales each head's z before W_O.
        `cache` holds the keys and values of the positions before `x`; queries look at them too, and
        those of `x` are appended.

        Raises ShapeError, with the shapes, for anything that does not fit.
        """
        q, k, v, past = self.project_cached(x, kv, cache)
        return self.merge(self.attend(q, k, v, mask=mask, past=past), head_gate=head_gate)

    def explicit(
        self,
        x: Tensor,
        kv: Tensor | None = None,
        *,
        mask: Tensor | None = None,
        head_gate: Tensor | None = None,
        cache: KVCache | None = None,
    ) -> AttentionRecord:
        """Every step of `forward`, as an `AttentionRecord`; the arguments are the same."""
        q, k, v, past = self.project_cached(x, kv, cache)
        allowed = self._allowed(q, k, mask, past)
        scores = attention_scores(q, repeat_heads(k, self.n_heads), self.scale)
        pattern = masked_softmax(scores, allowed)
        kept = F.dropout(pattern, self.dropout, self.training)
        z = kept.to(v.dtype) @ repeat_heads(v, self.n_heads)
        out = self.merge(z, head_gate=head_gate)
        return AttentionRecord(q=q, k=k, v=v, scores=scores, pattern=pattern, z=z, out=out)

    def project(self, x: Tensor, kv: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Queries `[B, H, T_q, d_h]`, keys and values `[B, G, T_k, d_h]`."""
        self._check_input("x", x)
        H, G, d_h = self.n_heads, self.n_kv_heads, self.d_head
        if kv is None:
            q, k, v = self.W_QKV(x).split([H * d_h, G * d_h, G * d_h], dim=-1)
        else:
            self._check_input("kv", kv)
            if kv.shape[0] != x.shape[0]:
                raise ShapeError(
                    f"x has shape {list(x.shape)} and kv {list(kv.shape)}; "
                    "their batch sizes B must be equal."
                )
            W, b = self.W_QKV.weight, self.W_QKV.bias
            q = F.linear(x, W[: H * d_h], None if b is None else b[: H * d_h])
            k, v = F.linear(kv, W[H * d_h :], None if b is None else b[H * d_h :]).chunk(2, dim=-1)
        return split_heads(q, H, d_h), split_heads(k, G, d_h), split_heads(v, G, d_h)

    def project_cached(
        self, x: Tensor, kv: Tensor | None, cache: KVCache | None
    ) -> tuple[Tensor, Tensor, Tensor, int]:
        """`project`, with the cached keys and values in front; then the first query's position."""
        q, k, v = self.project(x, kv)
        if cache is None:
            return q, k, v, 0
        past = cache.length
        return q, *cache.append(k, v), past

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, *, mask: Tensor | None = None, past: int = 0
    ) -> Tensor:
        """Each head's z, `[B, H, T_q, d_h]`, computed with torch's fused kernel.

        `past` is the position of the first query.
        """
        if not self.n_heads:
            return q
        dropout = self.dropout if self.training else 0.0
        shared = self.n_kv_heads != self.n_heads
        T_q, T_k = q.shape[2], k.shape[2]
        sees_all = not self.causal or (T_q == 1 and past >= T_k - 1)
        if mask is None and (sees_all or not past):
            return F.scaled_dot_product_attention(
                q, k, v, is_causal=not sees_all, dropout_p=dropout, scale=self.scale,
                enable_gqa=shared,
            )  # fmt: skip
        allowed = self._allowed(q, k, mask, past)
        assert allowed is not None
        # A row without an allowed key has no softmax. It gets all keys here, and its z is set to
        # zero afterwards, so that neither z nor its gradient is NaN.
        sees_any = allowed.any(dim=-1, keepdim=True)
        z = F.scaled_dot_product_attention(
            q, k, v, attn_mask=allowed | ~sees_any, dropout_p=dropout, scale=self.scale,
            enable_gqa=shared,
        )  # fmt: skip
        return z * sees_any

    def merge(self, z: Tensor, *, head_gate: Tensor | None = None) -> Tensor:
        """`[B, H, T_q, d_h]` -> gate each head -> concatenate heads -> W_O `[B, T_q, C]`."""
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

    @property
    def W_O_by_head(self) -> Tensor:
        """`[H, d_h, C]`: the part of W_O that each head writes through, as a view."""
        return self.W_O.weight.T.view(self.n_heads, self.d_head, self.d_model)

    def _check_input(self, name: str, x: Tensor) -> None:
        if x.dim() != 3 or x.shape[-1] != self.d_model:
            raise ShapeError(
                f"{name} has shape {list(x.shape)}; expected [B, T, C] with C = {self.d_model}."
            )

    def _allowed(self, q: Tensor, k: Tensor, mask: Tensor | None, past: int) -> Tensor | None:
        """The causal mask and the given mask as one boolean tensor; None if nothing is masked."""
        B, H, T_q, T_k = *q.shape[:3], k.shape[2]
        allowed = causal_mask(T_q, T_k, q.device, past=past) if self.causal else None
        if mask is None:
            return allowed
        given = expand_mask(mask, B, H, T_q, T_k)
        return given if allowed is None else given & allowed


def split_heads(x: Tensor, n_heads: int, d_head: int) -> Tensor:
    """`[B, T, H d_h]` -> view `[B, T, H, d_h]` -> transpose `[B, H, T, d_h]`, without a copy."""
    B, T, _ = x.shape
    return x.view(B, T, n_heads, d_head).transpose(1, 2)


def merge_heads(z: Tensor) -> Tensor:
    """`[B, H, T, d_h]` -> transpose `[B, T, H, d_h]` -> reshape `[B, T, H d_h]`, which copies."""
    B, H, T, d_h = z.shape
    return z.transpose(1, 2).reshape(B, T, H * d_h)


def repeat_heads(x: Tensor, n_heads: int) -> Tensor:
    """`[B, G, T, d_h]` -> `[B, H, T, d_h]`: query head h reads key/value head h // (H / G)."""
    G = x.shape[1]
    return x if n_heads == G else x.repeat_interleave(n_heads // G, dim=1)


def attention_scores(q: Tensor, k: Tensor, scale: float) -> Tensor:
    """Scaled dot products `[B, H, T_q, T_k]`, at least in float32, since float16 can overflow."""
    dtype = torch.promote_types(q.dtype, torch.float32)
    return (q.to(dtype) @ k.to(dtype).transpose(-2, -1)) * scale


def masked_softmax(scores: Tensor, allowed: Tensor | None) -> Tensor:
    """Softmax over the allowed keys.

    Masked keys get a weight of exactly 0; a row with no allowed key is all zeros.
    """
    if allowed is None:
        return scores.softmax(dim=-1)
    # The lowest finite number, not -inf, which would turn a row without allowed keys into NaN.
    lowest = torch.finfo(scores.dtype).min
    return scores.masked_fill(~allowed, lowest).softmax(dim=-1).masked_fill(~allowed, 0.0)


def causal_mask(T_q: int, T_k: int, device: torch.device | None = None, *, past: int = 0) -> Tensor:
    """Boolean `[T_q, T_k]`: True where the key is not after the query.

    `past` is the position of the first query.
    """
    return torch.ones(T_q, T_k, dtype=torch.bool, device=device).tril(past)


def expand_mask(mask: Tensor, B: int, H: int, T_q: int, T_k: int) -> Tensor:
    """A mask `[T_q, T_k]`, `[B, T_q, T_k]` or `[B, H, T_q, T_k]`, expanded to four axes.

    Missing axes B and H become 1. Raises ShapeError for any other shape or a type that is not bool.
    """
    if mask.dtype != torch.bool:
        raise ShapeError(
            f"The mask has type {mask.dtype}; expected torch.bool, True where a query may look."
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


def head_width(d_model: int, n_heads: int) -> int:
    """d_h = C / H. Raises ShapeError, with the nearest H that fit, unless C is a multiple of H."""
    if n_heads < 1 or d_model < 1 or d_model % n_heads:
        raise ShapeError(
            f"d_model = {d_model} is not a multiple of n_heads = {n_heads}; "
            f"{_nearest_head_counts(d_model, n_heads)}"
        )
    return d_model // n_heads


def fitting_head_counts(d_model: int, n_heads: int, *, how_many: int = 2) -> list[int]:
    """The divisors of d_model that are nearest to n_heads, in ascending order."""
    divisors = [n for n in range(1, d_model + 1) if d_model % n == 0]
    return sorted(sorted(divisors, key=lambda n: (abs(n - n_heads), n))[:how_many])


def _nearest_head_counts(d_model: int, n_heads: int) -> str:
    if d_model < 1:
        return "d_model must be at least 1."
    nearest = fitting_head_counts(d_model, n_heads)
    return f"the nearest numbers of heads that fit: {' or '.join(map(str, nearest))}."
