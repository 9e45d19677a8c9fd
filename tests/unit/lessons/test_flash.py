"""Attention in tiles: exact, never more than one tile of scores, none above the diagonal."""

import math
from itertools import groupby

import pytest
import torch
from support.layers import attention, close, random
from torch import Tensor
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from mha_viz.errors import ShapeError
from mha_viz.lessons.flash import (
    Tile,
    fitting_block,
    moved_values,
    tile_ranges,
    tiled_attention,
    tiles,
)

TOLERANCE = 1e-12  # float64
SIZES = [(1, 1, 1), (5, 5, 4), (8, 8, 3), (17, 17, 8), (3, 11, 4), (11, 3, 4)]
BLOCKS = [1, 2, 4, 5, 64]


def qkv(*leading: int, T_q: int, T_k: int, d_h: int) -> tuple[Tensor, Tensor, Tensor]:
    keys = (*leading, T_k, d_h)
    return random(*leading, T_q, d_h), random(*keys, seed=2), random(*keys, seed=4)


# --- exact ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("T_q", "T_k", "d_h"), SIZES)
def test_tiles_equal_untiled_attention(T_q, T_k, d_h, causal, block):
    q, k, v = qkv(2, 3, T_q=T_q, T_k=T_k, d_h=d_h)
    expected = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    close(tiled_attention(q, k, v, block=block, causal=causal), expected, TOLERANCE)


@pytest.mark.parametrize("block", BLOCKS)
def test_tiles_equal_explicit_attention(block):
    module = attention(scale=0.2)
    record = module.explicit(random(2, 5, 12))
    found = tiled_attention(record.q, record.k, record.v, block=block, scale=0.2)
    close(found, record.z, TOLERANCE)


@pytest.mark.parametrize("block", [1, 3, 64])
def test_huge_scores_do_not_overflow(block):
    q, k, v = qkv(T_q=9, T_k=9, d_h=4)
    q, k = 1e3 * q, 1e3 * k  # e^score would be infinite
    expected = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    close(tiled_attention(q, k, v, block=block), expected, TOLERANCE)


def test_half_precision_is_summed_in_single():
    q, k, v = (x.half() for x in qkv(2, T_q=33, T_k=33, d_h=8))
    found = tiled_attention(q, k, v, block=8)
    assert found.dtype == torch.float16
    assert all(tile.o.dtype == torch.float32 for tile in tiles(q, k, v, block=8))
    expected = F.scaled_dot_product_attention(q.float(), k.float(), v.float(), is_causal=True)
    close(found.float(), expected, 1e-3)


@pytest.mark.parametrize("causal", [False, True])
def test_gradients_are_those_of_untiled_attention(causal):
    inputs = [x.requires_grad_() for x in qkv(T_q=7, T_k=7, d_h=3)]
    weight = random(7, 3, seed=5)
    whole = F.scaled_dot_product_attention(*inputs, is_causal=causal)
    expected = torch.autograd.grad((whole * weight).sum(), inputs)
    tiled = tiled_attention(*inputs, block=3, causal=causal)
    found = torch.autograd.grad((tiled * weight).sum(), inputs)
    for ours, theirs in zip(found, expected, strict=True):
        close(ours, theirs, TOLERANCE)


def test_a_query_without_a_key_gets_zeros():
    q, k, v = qkv(T_q=3, T_k=0, d_h=4)
    assert torch.equal(tiled_attention(q, k, v), torch.zeros_like(q))


# --- step by step ---------------------------------------------------------------------------------


@pytest.mark.parametrize("block", [1, 3, 4, 64])
@pytest.mark.parametrize("causal", [False, True])
def test_running_values_are_those_of_the_keys_so_far(causal, block):
    T, d_h = 10, 4
    q, k, v = qkv(T_q=T, T_k=T, d_h=d_h)
    scores = q @ k.T / math.sqrt(d_h)
    if causal:
        scores = scores.masked_fill(~torch.ones(T, T).tril().bool(), -math.inf)
    for tile in tiles(q, k, v, block=block, causal=causal):
        rows, columns = tile.queries, tile.keys
        so_far = scores[rows.start : rows.stop, : columns.stop]
        close(tile.scores, so_far[:, columns.start :], TOLERANCE)
        close(tile.m, so_far.amax(-1), TOLERANCE)
        close(tile.l, (so_far - so_far.amax(-1, keepdim=True)).exp().sum(-1), TOLERANCE)
        close(tile.m + tile.l.log(), so_far.logsumexp(-1), TOLERANCE)
        close(tile.o, so_far.softmax(-1) @ v[: columns.stop], TOLERANCE)


def test_the_last_tile_of_a_block_of_queries_has_its_output():
    q, k, v = qkv(T_q=10, T_k=10, d_h=4)
    out = tiled_attention(q, k, v, block=4)
    blocks = groupby(tiles(q, k, v, block=4), key=lambda tile: tile.queries)
    last = [list(block)[-1] for _, block in blocks]
    assert [tile.queries for tile in last] == [range(4), range(4, 8), range(8, 10)]
    assert torch.equal(torch.cat([tile.o for tile in last]), out)


def test_a_tile_stays_as_it_was_when_the_next_one_comes():
    q, k, v = qkv(T_q=6, T_k=6, d_h=4)
    found, before = [], []
    for tile in tiles(q, k, v, block=2):
        found.append(tile)
        before.append([x.clone() for x in (tile.scores, tile.m, tile.l, tile.o)])
    for tile, copies in zip(found, before, strict=True):
        assert all(map(torch.equal, (tile.scores, tile.m, tile.l, tile.o), copies))


def test_the_hook_is_called_with_every_tile():
    q, k, v = qkv(2, T_q=6, T_k=6, d_h=4)
    visited: list[Tile] = []
    tiled_attention(q, k, v, block=4, on_tile=visited.append)
    expected = list(tile_ranges(6, 6, block=4))
    assert [(tile.queries, tile.keys) for tile in visited] == expected
    assert [list(tile.scores.shape) for tile in visited] == [[2, 4, 4], [2, 2, 4], [2, 2, 2]]


# --- which tiles, and how much memory -------------------------------------------------------------


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("T_q", "T_k"), [size[:2] for size in SIZES])
def test_every_allowed_pair_is_visited_once_and_no_tile_is_useless(T_q, T_k, causal, block):
    visits = torch.zeros(T_q, T_k, dtype=torch.int)
    for queries, keys in tile_ranges(T_q, T_k, block=block, causal=causal):
        assert 0 < len(queries) <= block
        assert 0 < len(keys) <= block
        assert not causal or keys.start <= queries.stop - 1, "entirely above the diagonal"
        visits[queries.start : queries.stop, keys.start : keys.stop] += 1
    counts = torch.ones(T_q, T_k, dtype=torch.bool)
    assert bool((visits[counts.tril() if causal else counts] == 1).all())


@pytest.mark.parametrize("n", [1, 2, 5])
def test_the_causal_mask_saves_about_half_of_the_tiles(n):
    assert len(list(tile_ranges(4 * n, 4 * n, block=4))) == n * (n + 1) // 2
    assert len(list(tile_ranges(4 * n, 4 * n, block=4, causal=False))) == n**2


def test_keys_above_the_diagonal_are_not_read():
    """A NaN there would spread through any product that it takes part in."""
    q, k, v = qkv(T_q=4, T_k=12, d_h=4)
    expected = tiled_attention(q, k[:4], v[:4], block=4)
    k[4:], v[4:] = math.nan, math.nan
    assert torch.equal(tiled_attention(q, k, v, block=4), expected)


class LargestResult(TorchDispatchMode):
    """Remembers the largest number of elements of any tensor that an operation returned."""

    def __init__(self) -> None:
        super().__init__()
        self.numel = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if isinstance(out, Tensor):
            self.numel = max(self.numel, out.numel())
        return out


def test_no_tensor_is_ever_larger_than_the_inputs_or_a_tile():
    T, d_h, block = 128, 2, 16
    q, k, v = qkv(T_q=T, T_k=T, d_h=d_h)
    with LargestResult() as tiled:
        tiled_attention(q, k, v, block=block)
    assert tiled.numel == max(T * d_h, block * block)
    with LargestResult() as whole:
        (q @ k.T).softmax(-1) @ v
    assert whole.numel == T * T


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", [0, -1])
def test_an_empty_block_is_rejected(block):
    q, k, v = qkv(T_q=3, T_k=3, d_h=4)
    with pytest.raises(ShapeError, match=f"block = {block}"):
        tiled_attention(q, k, v, block=block)


@pytest.mark.parametrize(
    "shapes",
    [
        ([3, 4], [3, 5], [3, 5]),
        ([3, 4], [3, 4], [2, 4]),
        ([2, 3, 4], [1, 3, 4], [1, 3, 4]),
        ([3, 4], [2, 3, 4], [2, 3, 4]),
        ([4], [4], [4]),
    ],
)
def test_inputs_that_do_not_fit_show_their_shapes(shapes):
    inputs = [torch.ones(shape) for shape in shapes]
    with pytest.raises(ShapeError) as caught:
        tiled_attention(*inputs)
    assert f"q has shape {shapes[0]}, k {shapes[1]} and v {shapes[2]}" in str(caught.value)
    with pytest.raises(ShapeError):
        next(tiles(*inputs))


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(("T", "block"), [(1, 4), (7, 2), (64, 16), (65, 16)])
def test_the_values_moved_are_those_of_the_tiles(T: int, block: int, causal: bool) -> None:
    d_h = 8
    queries = {q.start: len(q) for q, _ in tile_ranges(T, T, block=block, causal=causal)}
    keys = sum(len(k) for _, k in tile_ranges(T, T, block=block, causal=causal))
    moved = moved_values(T, d_h, block=block, causal=causal)
    assert moved.tiled == 2 * d_h * sum(queries.values()) + 2 * d_h * keys  # q, z; k, v
    assert moved.explicit == 4 * T * d_h + 4 * T * T
    with pytest.raises(ShapeError):
        moved_values(T, d_h, block=0)


@pytest.mark.parametrize("d_h", [1, 32, 64, 128, 100_000])
def test_the_largest_tile_that_fits_is_found(d_h: int) -> None:
    fast = 192 * 1024

    def needed(b: int) -> int:
        return (4 * b * d_h + b * b) * 2

    block = fitting_block(fast, d_h)
    assert needed(2 * block) > fast
    assert needed(block) <= fast or block == 1
