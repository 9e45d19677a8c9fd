"""FlashAttention's idea in plain torch: softmax(q k^T) v without ever holding q k^T.

The scores are computed tile by tile. A band of queries keeps three running values: the maximum m
and the sum l of its softmax so far, and the output o of the keys so far. A new tile with larger
scores rescales what was there before (the online softmax), so after the last tile o is exact:

    m' = max(m, max_j s_j)        l' = e^(m - m') l + sum_j e^(s_j - m')
    o' = (e^(m - m') l o + sum_j e^(s_j - m') v_j) / l'          Dao et al. 2022, algorithm 1

That algorithm has its outer loop over keys and values. Here queries are outside, as in
FlashAttention-2 (Dao 2023, algorithm 1): a band is finished before the next one begins. What
makes it fast is that a tile fits into a processor's nearest memory; plain torch shows the
arithmetic and the memory, not the speed.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from mha_viz.attention import attention_scores, causal_mask
from mha_viz.errors import ShapeError

BLOCK = 64


@dataclass(frozen=True, slots=True, eq=False)
class Tile:
    """One step: a tile of scores, and the running values of its queries after it.

    `b_q` and `b_k` are the numbers of its queries and keys; numbers are float32 at least.
    """

    queries: range  # their positions
    keys: range
    scores: Tensor  # [..., b_q, b_k], scaled; -inf where a key lies beyond its query
    m: Tensor  # [..., b_q], the largest score so far
    l: Tensor  # [..., b_q], the sum of e^(score - m) so far  # noqa: E741
    o: Tensor  # [..., b_q, d_h], attention over the keys so far


def tile_ranges(
    T_q: int, T_k: int, *, block: int = BLOCK, causal: bool = True
) -> Iterator[tuple[range, range]]:
    """The (queries, keys) of every tile in the order of the work, `block` positions a side.

    Where `causal`, tiles whose every key lies beyond their every query are left out: for T_q = T_k
    about half of them. Raises ShapeError for a block below 1.
    """
    if block < 1:
        raise ShapeError(f"block = {block}; a tile has at least one query and one key.")
    for start in range(0, T_q, block):
        queries = range(start, min(start + block, T_q))
        n_keys = min(queries.stop, T_k) if causal else T_k
        for first in range(0, n_keys, block):
            yield queries, range(first, min(first + block, T_k))


def tiles(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    block: int = BLOCK,
    causal: bool = True,
    scale: float | None = None,
) -> Iterator[Tile]:
    """Every tile of attention over `[..., T, d_h]`, computed when it is asked for.

    `q` is `[..., T_q, d_h]`, `k` and `v` are `[..., T_k, d_h]`: one head, or `[B, H, T, d_h]` for
    all at once. The last tile of a band of queries holds its finished output. `scale` multiplies
    the scores; 1 / sqrt(d_h) unless given. `causal` counts queries and keys from 0.

    Raises ShapeError, with the shapes, for inputs that do not fit, when the first tile is asked
    for.
    """
    _check(q, k, v)
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    for queries, keys in tile_ranges(q.shape[-2], k.shape[-2], block=block, causal=causal):
        q_tile = q[..., queries.start : queries.stop, :]
        k_tile, v_tile = (x[..., keys.start : keys.stop, :] for x in (k, v))
        scores = attention_scores(q_tile, k_tile, scale)
        if causal:
            past = queries.start - keys.start
            seen = causal_mask(len(queries), len(keys), q.device, past=past)
            scores = scores.masked_fill(~seen, -torch.inf)
        if keys.start == 0:
            m = scores.new_full(scores.shape[:-1], -torch.inf)
            total = torch.zeros_like(m)
            o = scores.new_zeros(q_tile.shape)
        m, total, o = _online_softmax(scores, v_tile.to(scores.dtype), m, total, o)
        yield Tile(queries, keys, scores, m, total, o)


def tiled_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    block: int = BLOCK,
    causal: bool = True,
    scale: float | None = None,
    on_tile: Callable[[Tile], None] | None = None,
) -> Tensor:
    """Attention `[..., T_q, d_h]` from tiles; a head never holds more than block x block scores.

    Inputs as for `tiles`; `on_tile` is told every tile. A query without a key gets zeros. Raises
    ShapeError.
    """
    _check(q, k, v)
    out = torch.zeros_like(q)
    for tile in tiles(q, k, v, block=block, causal=causal, scale=scale):
        out[..., tile.queries.start : tile.queries.stop, :] = tile.o.to(out.dtype)
        if on_tile is not None:
            on_tile(tile)
    return out


def _online_softmax(
    scores: Tensor, v: Tensor, m: Tensor, total: Tensor, o: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The running maximum, sum and output with one more tile of scores and values in them."""
    new_m = torch.maximum(m, scores.amax(dim=-1))
    weights = torch.exp(scores - new_m[..., None])
    kept = torch.exp(m - new_m) * total
    new_total = kept + weights.sum(dim=-1)
    new_o = (kept[..., None] * o + weights @ v) / new_total[..., None]
    return new_m, new_total, new_o


def _check(q: Tensor, k: Tensor, v: Tensor) -> None:
    same = q.dim() == k.dim() >= 2 and k.shape == v.shape
    if not same or q.shape[:-2] != k.shape[:-2] or q.shape[-1] != k.shape[-1]:
        raise ShapeError(
            f"q has shape {list(q.shape)}, k {list(k.shape)} and v {list(v.shape)}; expected "
            "[..., T_q, d_h], [..., T_k, d_h] and [..., T_k, d_h]. Heads that share keys and "
            "values need them repeated (repeat_heads)."
        )
