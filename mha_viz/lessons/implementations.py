"""One attention layer in seven forms: their code, and how far each is from the module.

The forms are in `forms.py`. They run on the same input with the module's weights.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mha_viz import reference
from mha_viz.attention import MultiHeadAttention, causal_mask
from mha_viz.callbacks import OnProgress
from mha_viz.lessons import forms
from mha_viz.lessons.code_trace import Code, traced
from mha_viz.lessons.plain_layer import PlainLayer, plain_layer

M = TypeVar("M", bound=nn.Module)


@dataclass(frozen=True, slots=True)
class Implementation:
    """One form of the layer: its code, what is special, and where it does each step."""

    title: str
    subtitle: str
    sentence: str
    code: Code
    run: Callable[[PlainLayer, Tensor], Tensor]  # the output [B, T, C], or several along axis 0
    expressions: Mapping[str, str]  # step -> the expression in the code that does it
    missing: Mapping[str, str] = field(default_factory=dict)  # step -> why it has none


@dataclass(frozen=True, slots=True)
class Comparison:
    """An implementation, and how it ran."""

    implementation: Implementation
    difference: float  # the largest absolute difference of its output from the module's
    shapes: Mapping[int, str]  # line of the code -> the shapes that it gave


@torch.inference_mode()
def compare(
    attention: MultiHeadAttention,
    x: Tensor,
    *,
    on_progress: OnProgress = lambda share: None,
) -> tuple[Comparison, ...]:
    """Compares each implementation with `attention.explicit` on `x` `[B, T, C]`.

    `on_progress` is called with the fraction done; an exception that it raises ends the comparison.
    Raises ShapeError for heads that do not fit into C channels.
    """
    expected = attention.explicit(x).out
    layer = plain_layer(attention)
    comparisons = []
    for done, implementation in enumerate(IMPLEMENTATIONS):
        on_progress(done / len(IMPLEMENTATIONS))
        out, lines = traced(forms, partial(implementation.run, layer, x))
        difference = float((out - expected).abs().max())
        comparisons.append(
            Comparison(implementation, difference, implementation.code.results(lines))
        )
    return tuple(comparisons)


@torch.inference_mode()
def parameters_seen(C: int, H: int) -> tuple[int, int]:
    """What `parameters()` counts for heads in an nn.ModuleList, and in a Python list."""
    with torch.device("meta"):
        module = forms.HeadByHead(C, H)
        heads = list(module.heads)
        seen = sum(p.numel() for p in module.parameters())
        del module.heads
        module.__dict__["heads"] = heads
    return seen, sum(p.numel() for p in module.parameters())


@torch.inference_mode()
def toy_shapes(
    B: int, T: int, d_in: int, d_out: int, head_counts: Sequence[int]
) -> list[list[int]]:
    """The shape of the output for each number of heads: it is always `[B, T, d_out]`."""
    x = torch.zeros(B, T, d_in)
    return [list(reference.SeparateProjections(d_in, d_out, n)(x).shape) for n in head_counts]


def with_weights(make: Callable[[], M], **weights: Tensor) -> M:
    """A module with these weights, which are shared with the caller, in evaluation mode.

    In the names, two underscores stand for a dot.
    """
    with torch.device("meta"):
        module = make().requires_grad_(False)
    named = {name.replace("__", "."): weight for name, weight in weights.items()}
    module.load_state_dict(named, assign=True)
    return module.eval()


def fused(layer: PlainLayer) -> forms.MultiHeadAttention:
    """The fused form with the weights of a layer."""
    return with_weights(
        lambda: forms.MultiHeadAttention(layer.W_O.shape[0], layer.n_heads),
        W_QKV__weight=layer.W_QKV, W_QKV__bias=layer.b_QKV,
        W_O__weight=layer.W_O, W_O__bias=layer.b_O,
    )  # fmt: skip


def _fused(layer: PlainLayer, x: Tensor) -> Tensor:
    out: Tensor = fused(layer)(x)
    return out


def _separate(layer: PlainLayer, x: Tensor) -> Tensor:
    W_Q, W_K, W_V = layer.W_QKV.chunk(3)
    b_Q, b_K, b_V = layer.b_QKV.chunk(3)
    module = with_weights(
        lambda: forms.SeparateProjections(x.shape[-1], layer.n_heads),
        W_Q__weight=W_Q, W_K__weight=W_K, W_V__weight=W_V, W_O__weight=layer.W_O,
        W_Q__bias=b_Q, W_K__bias=b_K, W_V__bias=b_V, W_O__bias=layer.b_O,
    )  # fmt: skip
    out: Tensor = module(x, causal_mask(x.shape[1], x.shape[1], x.device))
    return out


def _list(layer: PlainLayer, x: Tensor) -> Tensor:
    C, H = x.shape[-1], layer.n_heads
    weights, biases = layer.W_QKV.view(3, H, C // H, C), layer.b_QKV.view(3, H, C // H)
    state = {
        f"heads__{h}__W_{part}__{kind}": values[n, h]
        for h in range(layer.n_heads)
        for n, part in enumerate("QKV")
        for kind, values in (("weight", weights), ("bias", biases))
    }
    module = with_weights(
        lambda: forms.HeadByHead(x.shape[-1], layer.n_heads),
        **state, W_O__weight=layer.W_O, W_O__bias=layer.b_O,
    )  # fmt: skip
    out: Tensor = module(x)
    return out


def _functions(layer: PlainLayer, x: Tensor) -> Tensor:
    B, T, _ = x.shape
    q, k, v = F.linear(x, layer.W_QKV, layer.b_QKV).tensor_split(3, dim=-1)
    mask = causal_mask(T, T, x.device).expand(B, T, T)
    z = forms.multi_head_attention(q, k, v, layer.n_heads, mask)
    return F.linear(z, layer.W_O, layer.b_O)


def _numpy(layer: PlainLayer, x: Tensor) -> Tensor:
    tensors = (x, layer.W_QKV, layer.b_QKV, layer.W_O, layer.b_O)
    x_, W_QKV, b_QKV, W_O, b_O = (t.detach().float().cpu().numpy() for t in tensors)
    return torch.from_numpy(forms.numpy_attention(x_, W_QKV, b_QKV, W_O, b_O, layer.n_heads)).to(x)


def _tiles(layer: PlainLayer, x: Tensor) -> Tensor:
    qkv = F.linear(x, layer.W_QKV, layer.b_QKV).view(*x.shape[:2], 3, layer.n_heads, -1)
    q, k, v = qkv.permute(2, 0, 3, 1, 4)
    z = forms.tiled_attention(q, k, v)
    return F.linear(z.transpose(1, 2).flatten(2), layer.W_O, layer.b_O)


def _torch(layer: PlainLayer, x: Tensor) -> Tensor:
    module = with_weights(
        lambda: forms.WithFusedKernel(x.shape[-1], layer.n_heads),
        W_QKV__weight=layer.W_QKV, W_QKV__bias=layer.b_QKV,
        W_O__weight=layer.W_O, W_O__bias=layer.b_O,
    )  # fmt: skip
    weights = {
        "in_proj_weight": layer.W_QKV, "in_proj_bias": layer.b_QKV,
        "out_proj.weight": layer.W_O, "out_proj.bias": layer.b_O,
    }  # fmt: skip
    return torch.stack([module(x), forms.torch_module(x, weights, layer.n_heads)])


def _code(*parts: Callable[..., Any]) -> Code:
    return Code(parts)


_MODULE = {
    "x": "x.shape",
    "q k v": "self.W_QKV(x)",
    "split": "self.W_QKV(x).split(C, dim=-1)",
    "view": "t.view(B, T, self.H, self.d_h)",
    "transpose": "t.view(B, T, self.H, self.d_h).transpose(1, 2)",
    "scores": "q @ k.transpose(-2, -1) / self.d_h**0.5",
    "mask": "s.masked_fill(later, -torch.inf)",
    "softmax": "self.dropout(s.softmax(dim=-1))",
    "z": "w @ v",
    "merge": "z.transpose(1, 2).reshape(B, T, C)",
    "output": "self.W_O(z)",
    "+ x": "resid + out",
}
_BLOCK = "The block adds x to what this code returns, as in the fused form."
_GIVEN = "This code begins with q, k and v; they come from a product outside it."
_OUTSIDE = "This code ends with z; W_O and the residual stream follow outside it."
_SDPA = "F.scaled_dot_product_attention(q, k, v, is_causal=True)"
_LOWEST = "torch.finfo(s.dtype).min"

IMPLEMENTATIONS = (
    Implementation(
        "fused",
        "one product",
        "One product makes q, k and v of all heads; “@” then runs all heads at once.",
        _code(forms.MultiHeadAttention, forms.add_to_stream),
        _fused,
        _MODULE,
    ),
    Implementation(
        "separate + mask",
        "W_Q W_K W_V W_O",
        "W_Q, W_K and W_V are three matrices, and the caller passes the mask. So keys and values "
        "can come from another text, and attention need not be causal.",
        _code(forms.SeparateProjections),
        _separate,
        _MODULE
        | {
            "q k v": "self.W_Q(x)",
            "split": "",
            "view": "q.view(B, T, self.H, self.d_h)",
            "transpose": "q.view(B, T, self.H, self.d_h).transpose(1, 2)",
            "mask": f"s.masked_fill(~mask, {_LOWEST})",
            "+ x": "",
        },
        {"split": "Three products give q, k and v; nothing is split.", "+ x": _BLOCK},
    ),
    Implementation(
        "ModuleList",
        "one head at a time",
        "Each head is a module of its own, held in a list. This is closest to the formula, but "
        "takes H times as many small products.",
        _code(forms.Head, forms.HeadByHead),
        _list,
        {
            "x": "x.shape",
            "q k v": "self.W_Q(x)",
            "scores": "q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5",
            "mask": "s.masked_fill(later, -torch.inf)",
            "softmax": "s.softmax(dim=-1)",
            "z": "w @ v",
            "merge": "torch.cat([head(x) for head in self.heads], dim=-1)",
            "output": "self.W_O(z)",
        },
        dict.fromkeys(
            ("split", "view", "transpose"),
            "Each head has its own W_Q, W_K and W_V, so q is [B, T, d_h] from the start. The list "
            "takes the place of the head axis.",
        )
        | {"+ x": _BLOCK},
    ),
    Implementation(
        "split / merge",
        "two functions",
        "Three functions without weights; the mask is [B, T_q, T_k], one for each text, and "
        "unsqueeze(1) inserts an axis of size 1 for the heads.",
        _code(forms.split_heads, forms.merge_heads, forms.multi_head_attention),
        _functions,
        {
            "view": "t.view(B, T, H, C // H)",
            "transpose": "t.view(B, T, H, C // H).transpose(1, 2)",
            "scores": "q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5",
            "mask": f"s.masked_fill(~allowed, {_LOWEST})",
            "softmax": "s.softmax(dim=-1)",
            "z": "w @ v",
            "merge": "z.transpose(1, 2).reshape(B, T, H * d_h)",
        },
        dict.fromkeys(("x", "q k v", "split"), _GIVEN) | dict.fromkeys(("output", "+ x"), _OUTSIDE),
    ),
    Implementation(
        "NumPy",
        "einsum",
        "einsum names the axes: a letter that is missing after the arrow is summed over, so no "
        "axis has to be moved by hand.",
        _code(forms.numpy_attention),
        _numpy,
        {
            "x": "x.shape",
            "q k v": 'np.einsum("btc,nhic->nbhti", x, W)',
            "split": "W_QKV.reshape(3, H, C // H, C)",
            "view": "W_QKV.reshape(3, H, C // H, C)",
            "transpose": 'np.einsum("btc,nhic->nbhti", x, W)',
            "scores": 'np.einsum("bhti,bhsi->bhts", q, k) / (C // H) ** 0.5',
            "mask": "np.where(np.tri(T, dtype=bool), s, -np.inf)",
            "softmax": "e / e.sum(axis=-1, keepdims=True)",
            "z": 'np.einsum("bhts,bhsi->bthi", w, v)',
            "merge": "z.reshape(B, T, C)",
            "output": "z.reshape(B, T, C) @ W_O.T + b_O",
        },
        {"+ x": _BLOCK},
    ),
    Implementation(
        "tiles",
        "never all of [T, T]",
        "It never holds more than 16 × 16 scores of a head; a running maximum and a running sum "
        "make the softmax exact, as in FlashAttention.",
        _code(forms.tiled_attention),
        _tiles,
        {
            "scores": "q_i @ k[..., j : j + block, :].mT / d_h**0.5",
            "mask": "s.masked_fill(later, -torch.inf)",
            "softmax": "torch.exp(s - m)",
            "z": "shrink * sum_i + e @ v[..., j : j + block, :]",
        },
        dict.fromkeys(("x", "q k v", "split", "view", "transpose"), _GIVEN)
        | dict.fromkeys(("merge", "output", "+ x"), _OUTSIDE),
    ),
    Implementation(
        "torch",
        "fused kernel",
        "torch's kernel makes z of q, k and v without keeping the pattern; nn.MultiheadAttention "
        "is the whole layer, and its mask is True where a query may not look.",
        _code(forms.WithFusedKernel, forms.torch_module),
        _torch,
        _MODULE | dict.fromkeys(("scores", "mask", "softmax", "z"), _SDPA) | {"+ x": ""},
        {"+ x": _BLOCK},
    ),
)
