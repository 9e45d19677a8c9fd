"""FlashAttention's algorithm in plain torch: softmax(q k^T) v without storing all of q k^T.

The scores are computed tile by tile. A block of queries keeps three running values: the maximum m
and the sum l of its softmax so far, and the output o over the keys so far. A tile with larger
scores rescales the earlier values (online softmax), so o is exact after the last tile:

    m' = max(m, max_j s_j)        l' = e^(m - m') l + sum_j e^(s_j - m')
    o' = (e^(m - m') l o + sum_j e^(s_j - m') v_j) / l'          Dao et al. 2022, algorithm 1

That algorithm's outer loop runs over keys and values. Here it runs over queries, as in
FlashAttention-2 (Dao 2023, algorithm 1), so one block of queries is finished before the next one
begins. FlashAttention is fast because a tile fits into a GPU's on-chip memory; plain torch shows
its arithmetic and its memory use, not its speed.
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

    `b_q` and `b_k` are its numbers of queries and keys; values are at least float32.
    """

    queries: range  # positions
    keys: range  # positions
    scores: Tensor  # [..., b_q, b_k], scaled; -inf where the key is after the query
    m: Tensor  # [..., b_q], the largest score so far
    l: Tensor  # [..., b_q], the sum of e^(score - m) so far  # noqa: E741
    o: Tensor  # [..., b_q, d_h], attention over the keys so far


def tile_ranges(
    T_q: int, T_k: int, *, block: int = BLOCK, causal: bool = True
) -> Iterator[tuple[range, range]]:
    """The (queries, keys) of every tile of up to `block` x `block` positions, in processing order.

    If `causal`, tiles entirely above the diagonal are skipped: about half of them for T_q = T_k.
    Raises ShapeError for a block below 1.
    """
    if block < 1:
        raise ShapeError(f"block = {block}; a tile needs at least one query and one key.")
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
    """Yields every tile of attention over `[..., T, d_h]`, computed on demand.

    `q` is `[..., T_q, d_h]`, `k` and `v` are `[..., T_k, d_h]`: one head, or `[B, H, T, d_h]` for
    all heads. The last tile of a block of queries holds their final output. `scale` multiplies the
    scores (default: 1 / sqrt(d_h)). `causal` counts both queries and keys from position 0.

    Raises ShapeError with the shapes, on the first iteration, if the inputs do not match.
    """
    _check(q, k, v)
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    for queries, keys in tile_ranges(q.shape[-2], k.shape[-2], block=block, causal=causal):
        q_tile = q[..., queries.start : queries.stop, :]
        k_tile, v_tile = (x[..., keys.start : keys.stop, :] for x in (k, v))
        scores = attention_scores(q_tile, k_tile, scale)
        if causal:
            past = queries.start - keys.start
            allowed = causal_mask(len(queries), len(keys), q.device, past=past)
            scores = scores.masked_fill(~allowed, -torch.inf)
        if keys.start == 0:
            m = scores.new_full(scores.shape[:-1], -torch.inf)
            total = torch.zeros_like(m)
            o = scores.new_zeros(q_tile.shape)
        m, total, o = online_softmax(scores, v_tile.to(scores.dtype), m, total, o)
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
    """Attention `[..., T_q, d_h]` in tiles: a head never holds more than block x block scores.

    Takes the inputs of `tiles` and raises the same ShapeError. `on_tile` is called with every tile.
    Queries without keys get zeros.
    """
    _check(q, k, v)
    out = torch.zeros_like(q)
    for tile in tiles(q, k, v, block=block, causal=causal, scale=scale):
        out[..., tile.queries.start : tile.queries.stop, :] = tile.o.to(out.dtype)
        if on_tile is not None:
            on_tile(tile)
    return out


def online_softmax(
    scores: Tensor, v: Tensor, m: Tensor, total: Tensor, o: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The running maximum, sum and output after one more tile of scores and values."""
    new_m = torch.maximum(m, scores.amax(dim=-1))
    weights = torch.exp(scores - new_m[..., None])
    rescaled = torch.exp(m - new_m) * total
    new_total = rescaled + weights.sum(dim=-1)
    new_o = (rescaled[..., None] * o + weights @ v) / new_total[..., None]
    return new_m, new_total, new_o


@dataclass(frozen=True, slots=True)
class Moved:
    """Values that one head moves between slow and fast memory, read or written."""

    explicit: int
    tiled: int


def moved_values(T: int, d_head: int, *, block: int, causal: bool = True) -> Moved:
    """What explicit attention and tiles move for T queries and T keys.

    Explicit attention (Dao et al. 2022, algorithm 0) reads q and k and writes the scores, reads
    them and writes the pattern, reads the pattern and v and writes z: 4 T d_h + 4 T^2. Tiles read
    q and write z once, and read the keys and values once for each block of queries (Dao 2023,
    algorithm 1); if `causal`, only those of tiles that are not skipped. Raises ShapeError for a
    block below 1.
    """
    explicit = 4 * T * d_head + 4 * T * T
    if block < 1:
        raise ShapeError(f"block = {block}; a tile needs at least one query and one key.")
    stops = (min(start + block, T) if causal else T for start in range(0, T, block))
    return Moved(explicit, 2 * T * d_head + 2 * d_head * sum(stops))


def fitting_block(fast_bytes: int, d_head: int, *, bytes_per_value: int = 2) -> int:
    """The largest power of two b whose tile fits: q, k, v and z of b rows, and b x b scores.

    It is at least 1, even where nothing fits.
    """
    block = 1
    while (4 * 2 * block * d_head + (2 * block) ** 2) * bytes_per_value <= fast_bytes:
        block *= 2
    return block


def _check(q: Tensor, k: Tensor, v: Tensor) -> None:
    same_rank = q.dim() == k.dim() >= 2 and k.shape == v.shape
    if not same_rank or q.shape[:-2] != k.shape[:-2] or q.shape[-1] != k.shape[-1]:
        raise ShapeError(
            f"q has shape {list(q.shape)}, k {list(k.shape)} and v {list(v.shape)}; expected "
            "[..., T_q, d_h], [..., T_k, d_h] and [..., T_k, d_h]. Repeat shared keys and values "
            "with repeat_heads first."
        )
