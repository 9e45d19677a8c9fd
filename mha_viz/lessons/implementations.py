"""Several implementations of one attention layer: their error against the module, and their speed.

They are those of `reference.py`, `flash.py` and torch, run on the same input with the weights of
the module.
"""

import inspect
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from mha_viz import reference
from mha_viz.attention import MultiHeadAttention, causal_mask, head_width, merge_heads, repeat_heads
from mha_viz.callbacks import OnProgress
from mha_viz.lessons import flash
from mha_viz.lessons.walkthrough import random_layer
from mha_viz.reference import head_by_head


@dataclass(frozen=True, slots=True)
class Implementation:
    """One way to write the layer: what sets it apart, its code, and the code that runs it."""

    title: str
    sentence: str
    code: Callable[..., object]  # what a reader is shown
    run: Callable[[MultiHeadAttention, Tensor], Tensor]
    needs_all_heads: bool = False  # it cannot run a layer with pruned heads

    @property
    def source(self) -> str:
        """The code as text."""
        return inspect.cleandoc(inspect.getsource(self.code))


@dataclass(frozen=True, slots=True)
class Comparison:
    """An implementation and the largest absolute difference of its output from the module's."""

    implementation: Implementation
    difference: float


@dataclass(frozen=True, slots=True)
class Timing:
    """The fused module and a loop over single heads, timed alternately."""

    n_heads: int
    fused_ms: float  # the shortest of several runs
    loop_ms: float
    difference: float  # the largest absolute difference of their outputs


@torch.inference_mode()
def compare(
    attention: MultiHeadAttention,
    x: Tensor,
    *,
    on_progress: OnProgress = lambda share: None,
) -> tuple[Comparison, ...]:
    """Compares each implementation with `attention.explicit` on `x` `[B, T, C]`.

    Skips those that need all heads where some are pruned.

    `on_progress` is called with the fraction done; an exception that it raises ends the comparison.
    """
    expected = attention.explicit(x).out
    pruned = attention.n_heads * attention.d_head != attention.d_model
    implementations = [i for i in IMPLEMENTATIONS if not (pruned and i.needs_all_heads)]
    comparisons = []
    for done, implementation in enumerate(implementations):
        on_progress(done / len(implementations))
        difference = (implementation.run(attention, x) - expected).abs().max()
        comparisons.append(Comparison(implementation, float(difference)))
    return tuple(comparisons)


@torch.inference_mode()
def benchmark(
    d_model: int, T: int, head_counts: Sequence[int], *, repeats: int = 7
) -> Iterator[Timing]:
    """Times the fused module and a loop over heads on `[1, T, C]` for each number of heads.

    Raises ShapeError for a number of heads that d_model does not divide into.
    """
    for n_heads in head_counts:
        fused, x = random_layer(d_model, n_heads, 1, T)
        loop = head_by_head(fused)
        difference = float((fused(x) - loop(x)).abs().max())
        fused_ms, loop_ms = [], []
        for _ in range(repeats):  # alternately, so that a busy moment of the machine hits both
            fused_ms.append(_milliseconds(fused, x))
            loop_ms.append(_milliseconds(loop, x))
        # The shortest run is the one that other processes disturbed least.
        yield Timing(n_heads, min(fused_ms), min(loop_ms), difference)


@torch.inference_mode()
def toy_shapes(
    B: int, T: int, d_in: int, d_out: int, head_counts: Sequence[int]
) -> list[list[int]]:
    """The shape of the output for each number of heads: it is always `[B, T, d_out]`."""
    x = torch.zeros(B, T, d_in)
    return [list(reference.SeparateProjections(d_in, d_out, n)(x).shape) for n in head_counts]


def _milliseconds(module: nn.Module, x: Tensor) -> float:
    start = time.perf_counter()
    module(x)
    return 1e3 * (time.perf_counter() - start)


def _loop_over_heads(attention: MultiHeadAttention, x: Tensor) -> Tensor:
    out: Tensor = head_by_head(attention)(x)
    return out


def _function(attention: MultiHeadAttention, x: Tensor) -> Tensor:
    q, k, v = attention.project(x)
    H, T = attention.n_heads, x.shape[1]
    q, k, v = (merge_heads(repeat_heads(heads, H)) for heads in (q, k, v))
    # The function divides by √d_h; the model may have another scale.
    q = q * (attention.scale * head_width(q.shape[-1], H) ** 0.5)
    z = reference.multi_head_attention(q, k, v, H, causal_mask(T, T, x.device))
    out: Tensor = attention.W_O(z)
    return out


def _numpy(attention: MultiHeadAttention, x: Tensor) -> Tensor:
    W_QKV, b_QKV = (_array(tensor) for tensor in _plain_weights(attention))
    W_O, b_O = _array(attention.W_O.weight), _array(attention.W_O.bias)
    mask = reference.additive_mask(causal_mask(x.shape[1], x.shape[1]).numpy())
    out, _ = reference.numpy_attention(_array(x), W_QKV, b_QKV, W_O, b_O, attention.n_heads, mask)
    return torch.from_numpy(out).to(x)


def _array(tensor: Tensor | None) -> Any:
    """The numbers in float32, or None where there is no bias."""
    return None if tensor is None else tensor.detach().float().cpu().numpy()


def _tiles(attention: MultiHeadAttention, x: Tensor) -> Tensor:
    q, k, v = attention.project(x)
    k, v = (repeat_heads(heads, attention.n_heads) for heads in (k, v))
    return attention.merge(flash.tiled_attention(q, k, v, block=16, scale=attention.scale))


def _fused_kernel(attention: MultiHeadAttention, x: Tensor) -> Tensor:
    out: Tensor = attention(x)
    return out


def _torch_module(attention: MultiHeadAttention, x: Tensor) -> Tensor:
    W_QKV, b_QKV = _plain_weights(attention)
    theirs = nn.MultiheadAttention(
        attention.d_model, attention.n_heads, bias=b_QKV is not None, batch_first=True
    )
    state = {"in_proj_weight": W_QKV, "out_proj.weight": attention.W_O.weight}
    if b_QKV is not None:
        state |= {"in_proj_bias": b_QKV, "out_proj.bias": attention.W_O.bias}
    theirs.load_state_dict(state)
    masked = ~causal_mask(x.shape[1], x.shape[1], x.device)
    out: Tensor = theirs.to(x).eval()(x, x, x, attn_mask=masked, need_weights=False)[0]
    return out


def _plain_weights(attention: MultiHeadAttention) -> tuple[Tensor, Tensor | None]:
    """W_QKV and its bias for code that has no shared keys and that divides by √d_h.

    A shared key/value head is repeated for each of its query heads; q is multiplied by the ratio of
    the model's own scale to 1/√d_h.
    """
    H, G, d_h = attention.n_heads, attention.n_kv_heads, attention.d_head
    rows = torch.arange((H + 2 * G) * d_h)
    kv_head = torch.arange(H) // (H // G)
    kv_rows = rows[H * d_h :].view(2, G, d_h)[:, kv_head].flatten()
    repeated = torch.cat([rows[: H * d_h], kv_rows])
    factor = torch.ones(len(repeated), device=attention.W_QKV.weight.device)
    factor[: H * d_h] = attention.scale * d_h**0.5
    bias = attention.W_QKV.bias
    weight = attention.W_QKV.weight[repeated] * factor[:, None]
    return weight, None if bias is None else bias[repeated] * factor


IMPLEMENTATIONS = (
    Implementation(
        "Loop over heads",
        "Each head has its own three projections; the outputs are concatenated and projected.",
        reference.HeadByHead,
        _loop_over_heads,
    ),
    Implementation(
        "Function without weights",
        "It takes q, k and v, already projected, and returns the merged heads.",
        reference.multi_head_attention,
        _function,
    ),
    Implementation(
        "NumPy with einsum",
        "The indices say which axes are summed; the mask is added to the scores.",
        reference.numpy_attention,
        _numpy,
    ),
    Implementation(
        "In tiles",
        "It never holds more than one tile of scores, like FlashAttention.",
        flash.tiled_attention,
        _tiles,
    ),
    Implementation(
        "torch's fused kernel",
        "The module itself uses this kernel whenever the pattern is not needed.",
        MultiHeadAttention.attend,
        _fused_kernel,
    ),
    Implementation(
        "torch.nn.MultiheadAttention",
        "The module that comes with torch, with the same weights.",
        _torch_module,
        _torch_module,
        needs_all_heads=True,
    ),
)
