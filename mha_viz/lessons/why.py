"""Why no loop over heads is needed: the code of one head, beside the code of all heads at once.

`@` multiplies the last two axes and repeats over the axes before them. With H moved there, the
lines of one head run all heads. Both functions run on a layer's own weights, so that the shapes
beside their lines and the differences between their results are measured, not claimed.
"""

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from mha_viz.attention import MultiHeadAttention
from mha_viz.lessons.code_trace import Code, traced
from mha_viz.lessons.plain_layer import PlainLayer, plain_layer

Columns = tuple[tuple[Tensor, Tensor], ...]  # a matrix and a bias each for q, k and v


def one_head(x: Tensor, W_qkv: Columns, W_o: Tensor, later: Tensor) -> Any:
    """What one head adds, `[T, C]`, before the bias: `x` is `[T, C]`, each W `[C, d_h]`."""
    d_h = len(W_o)
    q, k, v = (x @ W + b for W, b in W_qkv)
    s = q @ k.transpose(-2, -1) / d_h**0.5
    s = s.masked_fill(later, -torch.inf)
    z = s.softmax(-1) @ v
    return z @ W_o


def all_heads(x: Tensor, W_QKV: Columns, W_O: Tensor, later: Tensor, H: int) -> Any:
    """What H heads add, `[T, C]`, before the bias: each W is `[C, H d_h]`."""
    T, d_h = len(x), len(W_O) // H
    q, k, v = (x @ W + b for W, b in W_QKV)
    q, k, v = (t.view(T, H, d_h).transpose(0, 1) for t in (q, k, v))
    s = q @ k.transpose(-2, -1) / d_h**0.5
    s = s.masked_fill(later, -torch.inf)
    z = s.softmax(-1) @ v
    z = z.transpose(0, 1).reshape(T, H * d_h)
    return z @ W_O


@dataclass(frozen=True, slots=True)
class CodeLine:
    """A line of code, and the shape of what it gave: "[6, 8, 32]", or "" for nothing."""

    code: str
    shape: str


@dataclass(frozen=True, slots=True)
class Pair:
    """Two lines that do the same for one head and for all; None where one side needs no line."""

    one: CodeLine | None
    all: CodeLine | None

    @property
    def same(self) -> bool:
        """Whether both are the same line, letter by letter."""
        return self.one is not None and self.all is not None and self.one.code == self.all.code


@dataclass(frozen=True, slots=True)
class Why:
    """Both codes side by side, and the largest absolute differences between their results."""

    pairs: tuple[Pair, ...]
    n_heads: int  # H of the code, pruned heads included
    z: float  # z of the head alone, and its sheet of z of all heads
    every_z: float  # the same over all heads
    out: float  # what all heads alone add together, and what the code of all heads gives
    module: float  # the code of all heads with the bias, and the module
    one_of_all: float  # the code of all heads with H = 1, and the code of one head
    one_in_module: float  # MultiHeadAttention with one head, and the code of one head
    changes: tuple[str, ...]  # what was changed to make the layer a plain one, in sentences


@torch.inference_mode()
def why(attention: MultiHeadAttention, x: Tensor, head: int) -> Why:
    """Runs both codes on the first sequence of `x` `[B, T, C]` with the layer's weights.

    `head` is an index among the heads of `attention`. Raises ShapeError as `plain_layer` does.
    """
    layer, x = plain_layer(attention), x[0]
    H, T, C = layer.n_heads, len(x), layer.W_O.shape[0]
    later = torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1)
    if not attention.causal:
        later.zero_()
    W_QKV, W_O = _columns(layer), layer.W_O.T
    alone = [(_of_head(W_QKV, h, H), W_O.view(H, -1, C)[h]) for h in range(H)]
    here = sys.modules[__name__]
    outs, zs = [], []
    for W_qkv, W_o in alone:
        out, lines = traced(here, partial(one_head, x, W_qkv, W_o, later))
        outs.append(out)
        zs.append(lines[-1].after["z"])
        if len(outs) == head + 1:
            of_one = lines
    together, of_all = traced(here, partial(all_heads, x, W_QKV, W_O, later, H))
    z = next(line.after["z"] for line in reversed(of_all) if line.after["z"].dim() == 3)
    single = all_heads(x, *alone[head], later, 1)
    return Why(
        pairs=_pairs(Code((one_head,)).results(of_one), Code((all_heads,)).results(of_all)),
        n_heads=H,
        z=_apart(zs[head], z[head]),
        every_z=max(_apart(one, sheet) for one, sheet in zip(zs, z, strict=True)),
        out=_apart(torch.stack(outs).sum(dim=0), together),
        module=_apart(together + layer.b_O, attention.explicit(x[None]).out[0]),
        one_of_all=_apart(single, outs[head]),
        one_in_module=_apart(_module_of_one(attention, *alone[head])(x[None])[0], outs[head]),
        changes=layer.changes,
    )


def _columns(layer: PlainLayer) -> Columns:
    """The matrices `[C, C]` and the biases of q, k and v, as formulas write them."""
    matrices, biases = layer.W_QKV.T.chunk(3, dim=1), layer.b_QKV.chunk(3)
    return tuple(zip(matrices, biases, strict=True))


def _of_head(W_QKV: Columns, head: int, H: int) -> Columns:
    """The columns of one head."""
    return tuple((W.chunk(H, dim=1)[head], b.chunk(H)[head]) for W, b in W_QKV)


def _module_of_one(
    attention: MultiHeadAttention, W_qkv: Columns, W_o: Tensor
) -> Callable[[Tensor], Tensor]:
    """The app's own module with H = 1 and the weights of one head, step by step."""
    d_h, C = W_o.shape
    one = MultiHeadAttention(C, 1, d_head=d_h, causal=attention.causal).to(W_o)
    one.W_QKV.weight.copy_(torch.cat([W for W, _ in W_qkv], dim=1).T)
    assert one.W_QKV.bias is not None
    one.W_QKV.bias.copy_(torch.cat([b for _, b in W_qkv]))
    one.W_O.weight.copy_(W_o.T)
    assert one.W_O.bias is not None
    one.W_O.bias.zero_()
    return lambda x: one.explicit(x).out


def _apart(found: Tensor, expected: Tensor) -> float:
    return float((found - expected).abs().max())


def _pairs(of_one: dict[int, str], of_all: dict[int, str]) -> tuple[Pair, ...]:
    """The lines of both codes, level where they do the same.

    Lines that only one side needs are those that the other has no line of equal beginning for.
    """
    one, every = _lines(one_head, of_one), _lines(all_heads, of_all)
    pairs: list[Pair] = []
    left = list(one)
    for line in every:
        if left and _does(line.code) == _does(left[0].code):
            pairs.append(Pair(left.pop(0), line))
        else:
            pairs.append(Pair(None, line))
    assert not left
    return tuple(pairs)


def _lines(function: Callable[..., Tensor], shapes: dict[int, str]) -> list[CodeLine]:
    """The lines that compute, without the first, which only names sizes."""
    source = inspect.getsource(function).rstrip().splitlines()
    found = []
    for number, line in enumerate(source, start=1):
        code = line.strip()
        if number in shapes and not code.split(" = ")[0].endswith("d_h"):
            found.append(CodeLine(code.replace("return ", "out = "), shapes[number]))
    return found


def _does(code: str) -> str:
    """What a line is for: what it names, and the first thing that it reads."""
    name, _, rest = code.partition(" = ")
    return f"{name} = {rest.partition(' ')[0].partition('.')[0]}"
