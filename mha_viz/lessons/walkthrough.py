"""One attention layer step by step: the tensor of each step, its memory layout and its FLOPs.

The steps are those of `attention.MultiHeadAttention`, run one at a time so that each tensor can be
shown, and the residual stream after it. The line of code of a step is read from the source.
"""

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import islice

import torch
from torch import Tensor

from mha_viz import attention as attention_source
from mha_viz import network as network_source
from mha_viz.attention import MultiHeadAttention, causal_mask, repeat_heads
from mha_viz.lessons.counting import SOFTMAX_FLOPS
from mha_viz.network import Network

SOURCES = {"attention": attention_source, "network": network_source}


@dataclass(frozen=True, slots=True)
class Lesson:
    """The explanation of a step that a page shows, for any sizes."""

    name: str
    title: str
    axes: tuple[str, ...]
    sentence: str
    formula: str
    code: str  # part of the line that does it
    by_head: bool = True  # whether each value belongs to one head
    module: str = "attention"  # of the package, which has the line


LESSONS: tuple[Lesson, ...] = (
    Lesson(
        "x",
        "Input",
        ("B", "T", "C"),
        "One vector of C values for each of T positions. No head owns any of them yet.",
        r"x \in \mathbb{R}^{B \times T \times C}",
        "q, k, v = self.project(x, kv)",
        by_head=False,
    ),
    Lesson(
        "q k v",
        "One fused projection",
        ("B", "T", "3C"),
        "One matrix product makes q, k and v of all heads. A loop over heads would compute the "
        "same values in many small products.",
        r"x\,W_{QKV} + b",
        "q, k, v = self.W_QKV(x)",
    ),
    Lesson(
        "split",
        "Split",
        ("B", "T", "C"),
        "The columns are split into q, k and v. Nothing is copied: each is a view of the same "
        "memory. From here on, the pictures show q.",
        r"[\,q \mid k \mid v\,]",
        "q, k, v = self.W_QKV(x)",
    ),
    Lesson(
        "view",
        "View as heads",
        ("B", "T", "H", "d_h"),
        "The C columns are indexed as H blocks of d_h columns, one block per head: column "
        "c = d_h h + i. Only the shape changes, not the memory.",
        r"C = H \cdot d_h",
        "return x.view(B, T, n_heads, d_head)",
    ),
    Lesson(
        "transpose",
        "Transpose",
        ("B", "H", "T", "d_h"),
        "The head axis moves before the position axis, so each head is a matrix. Two strides "
        "change places; the values stay where they are in memory.",
        r"q_h \in \mathbb{R}^{T \times d_h}",
        "return x.view(B, T, n_heads, d_head)",
    ),
    Lesson(
        "scores",
        "Query times key",
        ("B", "H", "T", "T"),
        "In each head, every query is compared with every key: a dot product over d_h values. Its "
        "standard deviation grows like √d_h; dividing by √d_h keeps the softmax from giving the "
        "largest score of a row too much weight.",
        r"\frac{q_h k_h^{\top}}{\sqrt{d_h}}",
        "return (q.to(dtype) @ k.to(dtype)",
    ),
    Lesson(
        "mask",
        "Mask",
        ("B", "H", "T", "T"),
        "No position may look at a later one. Scores above the diagonal are masked before the "
        "softmax, so the remaining weights still add up to 1.",
        r"s_{ij} = -\infty \;\; (j > i)",
        "return scores.masked_fill(~allowed, lowest)",
    ),
    Lesson(
        "softmax",
        "Softmax",
        ("B", "H", "T", "T"),
        "Each row becomes weights that add up to 1: the attention pattern.",
        r"\mathrm{softmax}(s)_{ij} = \frac{e^{s_{ij}}}{\sum_k e^{s_{ik}}}",
        "return scores.masked_fill(~allowed, lowest)",
    ),
    Lesson(
        "z",
        "Weighted sum of values",
        ("B", "H", "T", "d_h"),
        "Each position sums the value vectors of the positions it looks at, weighted by its row "
        "of the pattern.",
        r"z_h = A_h\,v_h",
        "z = kept.to(v.dtype) @ repeat_heads(v",
    ),
    Lesson(
        "merge",
        "Merge",
        ("B", "T", "C"),
        "The position axis comes first again, and the H blocks of a position become one row of C "
        "values. A view of transposed memory is rarely possible, so reshape makes a copy where it "
        "must.",
        r"[\,z_0 \mid z_1 \mid \dots \mid z_{H-1}\,]",
        "return z.transpose(1, 2).reshape(",
    ),
    Lesson(
        "output",
        "Output projection",
        ("B", "T", "C"),
        "W_O mixes the heads. Before it, each slice of columns belongs to one head; after it, "
        "every column can depend on every head.",
        r"[\,z_0 \mid \dots \mid z_{H-1}\,]\,W_O + b_O",
        "self.W_O(merge_heads(z))",
        by_head=False,
    ),
    Lesson(
        "+ x",
        "Residual stream",
        ("B", "T", "C"),
        "The layer adds its output to the residual stream, from which x was read through a "
        "LayerNorm. A random layer has no LayerNorm: there, the stream is x itself.",
        r"\mathrm{resid} + \mathrm{output}",
        "resid_mid = resid + attn_out",
        by_head=False,
        module="network",
    ),
)


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One step of one layer: its lesson and the tensor that it returned."""

    lesson: Lesson
    tensor: Tensor = field(repr=False)
    flops: int  # a multiply-add counts as two
    copied: bool  # whether it has storage of its own

    @property
    def shape(self) -> list[int]:
        """The size of each axis."""
        return list(self.tensor.shape)

    @property
    def strides(self) -> list[int]:
        """For each axis, the number of elements in memory from one index to the next."""
        return list(self.tensor.stride())

    @property
    def dtype(self) -> str:
        """The type of its elements: torch's name without "torch."."""
        return str(self.tensor.dtype).removeprefix("torch.")

    @property
    def n_bytes(self) -> int:
        """Bytes of its elements; a view shares them with another tensor."""
        return self.tensor.numel() * self.tensor.element_size()


@torch.inference_mode()
def walk(attention: MultiHeadAttention, x: Tensor, resid: Tensor | None = None) -> tuple[Step, ...]:
    """Every step of the layer on `x` `[B, T, C]`, in the order of LESSONS.

    The last tensor is `resid + attention(x)`; `resid` `[B, T, C]` is x itself by default. Masked
    scores are -inf.
    """
    steps = []
    previous: Tensor | None = None
    for lesson, (tensor, flops) in zip(LESSONS, _tensors(attention, x, resid), strict=True):
        copied = previous is None or not _same_storage(previous, tensor)
        steps.append(Step(lesson, tensor, flops, copied))
        previous = tensor
    return tuple(steps)


@torch.inference_mode()
def layer_input(network: Network, ids: Tensor, layer: int) -> tuple[Tensor, Tensor]:
    """The residual stream before a layer, and what its attention reads; each `[B, T, C]`."""
    resid = next(islice(network.residuals(ids), layer, None))
    return resid, network.blocks[layer].attention_input(resid)


def random_layer(
    d_model: int, n_heads: int, B: int, T: int, *, seed: int = 0
) -> tuple[MultiHeadAttention, Tensor]:
    """A layer with seeded random weights and an input `[B, T, C]` for it.

    Raises ShapeError if n_heads does not divide d_model.
    """
    attention = MultiHeadAttention(d_model, n_heads).requires_grad_(False)
    generator = torch.Generator().manual_seed(seed)
    for weight in attention.parameters():
        weight.normal_(std=d_model**-0.5, generator=generator)
    return attention, torch.randn(B, T, d_model, generator=generator)


def owners(attention: MultiHeadAttention, step: Step, heads: Sequence[int]) -> tuple[int, ...]:
    """The head that owns each block of columns, or each matrix, of a step; empty if none does.

    `heads` are the indices of the layer's heads in the model. A shared key/value head is named
    after its first query head.
    """
    if not step.lesson.by_head:
        return ()
    if step.lesson.name != "q k v":
        return tuple(heads)
    kv_heads = tuple(heads[:: attention.n_heads // attention.n_kv_heads])
    return tuple(heads) + 2 * kv_heads


def _tensors(
    attention: MultiHeadAttention, x: Tensor, resid: Tensor | None
) -> Iterator[tuple[Tensor, int]]:
    """The tensor and the FLOPs of every step."""
    B, T, C = x.shape
    H, G, d_h = attention.n_heads, attention.n_kv_heads, attention.d_head
    pairs = B * H * T * T
    yield x, 0
    qkv = attention.W_QKV(x)
    yield qkv, 2 * B * T * C * (H + 2 * G) * d_h
    q, k, v = qkv.split([H * d_h, G * d_h, G * d_h], dim=-1)
    yield q, 0
    q, k, v = (columns.unflatten(-1, (-1, d_h)) for columns in (q, k, v))
    yield q, 0
    q, k, v = (heads.transpose(1, 2) for heads in (q, k, v))
    k, v = repeat_heads(k, H), repeat_heads(v, H)
    yield q, 0
    scores = q @ k.transpose(-2, -1) * attention.scale
    yield scores, 2 * pairs * d_h + pairs
    allowed = causal_mask(T, T, x.device) if attention.causal else torch.ones_like(scores).bool()
    masked = scores.masked_fill(~allowed, -torch.inf)
    yield masked, 0
    pattern = masked.softmax(dim=-1)
    yield pattern, (SOFTMAX_FLOPS - 1) * pairs  # SOFTMAX_FLOPS includes the scale, counted above
    z = pattern @ v
    yield z, 2 * pairs * d_h
    merged = z.transpose(1, 2).reshape(B, T, H * d_h)
    yield merged, 0
    output = attention.W_O(merged)
    yield output, 2 * B * T * H * d_h * C
    yield (x if resid is None else resid) + output, B * T * C


def _same_storage(a: Tensor, b: Tensor) -> bool:
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


@cache
def code_line(lesson: Lesson) -> tuple[int, str]:
    """The number and the text of the first line of the lesson's module that has its code.

    Raises LookupError if there is none, because a lesson no longer matches the code.
    """
    source = inspect.getsource(SOURCES[lesson.module])
    for number, line in enumerate(source.splitlines(), start=1):
        if lesson.code in line:
            return number, line.strip()
    raise LookupError(f"{lesson.module}.py has no line with {lesson.code!r}")
