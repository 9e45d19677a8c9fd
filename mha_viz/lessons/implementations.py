"""One attention layer told in several ways: how far each is from the module, and which is faster.

The other tellings are those of `reference.py`, `tiled.py` and torch itself, run with the weights of
the module on the same input.
"""

import inspect
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from mha_viz import reference
from mha_viz.attention import MultiHeadAttention, causal_mask, head_width, merge_heads, repeat_heads
from mha_viz.lessons import flash
from mha_viz.lessons.walkthrough import random_layer
from mha_viz.reference import head_by_head


@dataclass(frozen=True, slots=True)
class Telling:
    """One way to write the layer, and the largest difference of its output from the module's."""

    title: str
    sentence: str
    code: str
    difference: float


@dataclass(frozen=True, slots=True)
class Heat:
    """The fused module and a list of single heads, timed one after the other."""

    n_heads: int
    fused: float  # milliseconds, the shortest of several runs
    listed: float
    difference: float


@torch.inference_mode()
def tellings(
    attention: MultiHeadAttention,
    x: Tensor,
    *,
    on_progress: Callable[[float], object] = lambda share: None,
) -> tuple[Telling, ...]:
    """Every telling of the layer on `x` `[B, T, C]`, held against `attention.explicit(x).out`.

    `on_progress` is told the share that is done, and may raise to stop.
    """
    right = attention.explicit(x).out
    ways: tuple[tuple[str, str, object, Callable[[MultiHeadAttention, Tensor], Tensor]], ...] = (
        (
            "A list of single heads",
            "Each head has its own three projections; their outputs are glued and projected.",
            reference.HeadByHead,
            lambda attention, x: head_by_head(attention)(x),
        ),
        (
            "A function of projected inputs",
            "No weights inside: q, k and v come in, the merged heads come out.",
            reference.multi_head_attention,
            _by_function,
        ),
        (
            "NumPy with einsum",
            "The indices say what is summed; the mask is added to the scores.",
            reference.numpy_attention,
            _by_numpy,
        ),
        (
            "Tile by tile",
            "Never more than a tile of scores at once, as FlashAttention works.",
            flash.tiled_attention,
            _by_tiles,
        ),
        (
            "torch's fused kernel",
            "What the module itself uses where nobody asks for the pattern.",
            MultiHeadAttention.attend,
            lambda attention, x: attention(x),
        ),
        (
            "torch.nn.MultiheadAttention",
            "The module that comes with torch, given the same weights.",
            _by_torch,
            _by_torch,
        ),
    )
    found = []
    for done, (title, sentence, code, way) in enumerate(ways):
        on_progress(done / len(ways))
        # torch's module knows no heads that were taken out.
        if way is _by_torch and attention.n_heads * attention.d_head != attention.d_model:
            continue
        told = inspect.cleandoc(inspect.getsource(code))  # type: ignore[arg-type]
        found.append(Telling(title, sentence, told, float((way(attention, x) - right).abs().max())))
    return tuple(found)


@torch.inference_mode()
def race(d_model: int, T: int, heads: Sequence[int], *, repeats: int = 7) -> Iterator[Heat]:
    """For each number of heads the time of both ways on `[1, T, C]`, taken in turns.

    Raises ShapeError for a number of heads that d_model does not divide into.
    """
    for n_heads in heads:
        fused, x = random_layer(d_model, n_heads, 1, T)
        listed = head_by_head(fused)
        difference = float((fused(x) - listed(x)).abs().max())
        times: tuple[list[float], list[float]] = ([], [])
        for _ in range(repeats):
            for module, taken in zip((fused, listed), times, strict=True):
                start = time.perf_counter()
                module(x)
                taken.append(1e3 * (time.perf_counter() - start))
        # The shortest is the one that the rest of the machine disturbed least.
        yield Heat(n_heads, min(times[0]), min(times[1]), difference)


@torch.inference_mode()
def toy_shapes(B: int, T: int, d_in: int, d_out: int, heads: Sequence[int]) -> list[list[int]]:
    """The shape of the output for each number of heads: it is always `[B, T, d_out]`."""
    x = torch.zeros(B, T, d_in)
    return [list(reference.SeparateProjections(d_in, d_out, n)(x).shape) for n in heads]


def _by_function(attention: MultiHeadAttention, x: Tensor) -> Tensor:
    q, k, v = attention.project(x)
    H, T = attention.n_heads, x.shape[1]
    q, k, v = (merge_heads(repeat_heads(part, H)) for part in (q, k, v))
    # The function divides by the root of d_h; a model may scale in another way.
    q = q * (attention.scale * head_width(q.shape[-1], H) ** 0.5)
    z = reference.multi_head_attention(q, k, v, H, causal_mask(T, T, x.device))
    out: Tensor = attention.W_O(z)
    return out


def _by_numpy(attention: MultiHeadAttention, x: Tensor) -> Tensor:
    W, b = _plain_rows(attention)
    allowed = causal_mask(x.shape[1], x.shape[1]).numpy()
    out, _ = reference.numpy_attention(
        _numpy(x), _numpy(W), None if b is None else _numpy(b),
        _numpy(attention.W_O.weight),
        None if attention.W_O.bias is None else _numpy(attention.W_O.bias),
        attention.n_heads, reference.additive_mask(allowed),
    )  # fmt: skip
    return torch.from_numpy(out).to(x)


def _by_tiles(attention: MultiHeadAttention, x: Tensor) -> Tensor:
    q, k, v = attention.project(x)
    k, v = (repeat_heads(part, attention.n_heads) for part in (k, v))
    return attention.merge(flash.tiled_attention(q, k, v, block=16, scale=attention.scale))


def _by_torch(attention: MultiHeadAttention, x: Tensor) -> Tensor:
    W, b = _plain_rows(attention)
    theirs = nn.MultiheadAttention(
        attention.d_model, attention.n_heads, bias=b is not None, batch_first=True
    )
    state = {"in_proj_weight": W, "out_proj.weight": attention.W_O.weight}
    if b is not None:
        state |= {"in_proj_bias": b, "out_proj.bias": attention.W_O.bias}
    theirs.load_state_dict(state)
    hidden = ~causal_mask(x.shape[1], x.shape[1], x.device)
    out: Tensor = theirs.to(x).eval()(x, x, x, attn_mask=hidden, need_weights=False)[0]
    return out


def _plain_rows(attention: MultiHeadAttention) -> tuple[Tensor, Tensor | None]:
    """W_QKV and its bias for a telling that shares no keys and divides by the root of d_h.

    A shared key/value head is there once per query head; where the module scales in another way,
    q makes up for it.
    """
    H, G, d_h = attention.n_heads, attention.n_kv_heads, attention.d_head
    rows = torch.arange((H + 2 * G) * d_h)
    owner = torch.arange(H) // (H // G)
    kv = rows[H * d_h :].view(2, G, d_h)[:, owner].flatten()
    chosen = torch.cat([rows[: H * d_h], kv])
    stretch = torch.ones(len(chosen), device=attention.W_QKV.weight.device)
    stretch[: H * d_h] = attention.scale * d_h**0.5
    bias = attention.W_QKV.bias
    weight = attention.W_QKV.weight[chosen] * stretch[:, None]
    return weight, None if bias is None else bias[chosen] * stretch


def _numpy(tensor: Tensor) -> reference.Array:
    array: reference.Array = tensor.detach().float().cpu().numpy()
    return array
