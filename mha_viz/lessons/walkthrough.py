"""One attention layer, step by step, on real tensors: what each step makes, where and at what cost.

The steps are those of `attention.MultiHeadAttention`, run one by one, so that each leaves its
tensor behind. The line of code shown with a step is read from that file.
"""

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache

import torch
from torch import Tensor

from mha_viz import attention as source
from mha_viz.attention import MultiHeadAttention, causal_mask, repeat_heads
from mha_viz.lessons.counting import SOFTMAX_FLOPS


@dataclass(frozen=True, slots=True)
class Lesson:
    """What is said of a step, whatever the sizes: the words, the formula and the line of code."""

    name: str
    title: str
    axes: tuple[str, ...]
    sentence: str
    formula: str
    code: str  # how the line begins, or its whole
    by_head: bool  # whether a number belongs to one head


LESSONS: tuple[Lesson, ...] = (
    Lesson(
        "input", "Input", ("B", "T", "C"),
        "One vector of C numbers for each of T positions; no head owns any of them yet.",
        r"x \in \mathbb{R}^{B \times T \times C}", "q, k, v = self.project(x, kv)", False,
    ),
    Lesson(
        "project", "One product for all heads", ("B", "T", "3C"),
        "One matrix product makes the q, k and v of every head: a loop over heads would make the "
        "same numbers in many small products.",
        r"x\,W_{QKV} + b", "q, k, v = self.W_QKV(x)", True,
    ),
    Lesson(
        "split", "Split", ("B", "T", "C"),
        "The columns are cut into three: q, k and v. Nothing is moved; each is a window on the "
        "same memory. Shown: q.",
        r"[\,q \mid k \mid v\,]", "q, k, v = self.W_QKV(x)", True,
    ),
    Lesson(
        "view", "View as heads", ("B", "T", "H", "d_h"),
        "The C columns are read as H blocks of d_h: a head is a block. Only the way to count "
        "changes.",
        r"C = H \cdot d_h", "return x.view(B, T, n_heads, d_head)", True,
    ),
    Lesson(
        "transpose", "Transpose", ("B", "H", "T", "d_h"),
        "Heads come before positions, so that each head is a matrix of its own. Two strides change "
        "places; the numbers stay where they are.",
        r"q_h \in \mathbb{R}^{T \times d_h}", "return x.view(B, T, n_heads, d_head)", True,
    ),
    Lesson(
        "scores", "Query times key", ("B", "H", "T", "T"),
        "For each head, every query meets every key: a dot product over its d_h numbers.",
        r"q_h\,k_h^{\top}", "return (q.to(dtype) @ k.to(dtype)", True,
    ),
    Lesson(
        "scale", "Scale", ("B", "H", "T", "T"),
        "A dot product of d_h numbers spreads like the root of d_h; dividing by it keeps the "
        "softmax from choosing one key alone.",
        r"\frac{q_h k_h^{\top}}{\sqrt{d_h}}", "return (q.to(dtype) @ k.to(dtype)", True,
    ),
    Lesson(
        "mask", "Mask", ("B", "H", "T", "T"),
        "No position may look at a later one: what lies above the diagonal is taken out before the "
        "softmax, so that the rest still adds up to 1.",
        r"s_{ij} = -\infty \;\; (j > i)",
        "return scores.masked_fill(~allowed, lowest)", True,
    ),
    Lesson(
        "softmax", "Softmax", ("B", "H", "T", "T"),
        "Each row becomes weights that add up to 1: the pattern.",
        r"\mathrm{softmax}(s)_{ij} = \frac{e^{s_{ij}}}{\sum_k e^{s_{ik}}}",
        "return scores.masked_fill(~allowed, lowest)", True,
    ),
    Lesson(
        "weigh", "Weigh the values", ("B", "H", "T", "d_h"),
        "Each position takes the mean of the values it may see, weighted by its row.",
        r"z_h = A_h\,v_h", "z = kept.to(v.dtype) @ repeat_heads(v", True,
    ),
    Lesson(
        "back", "Transpose back", ("B", "T", "H", "d_h"),
        "Positions come first again; the heads of a position stand side by side, but not yet in "
        "memory.",
        r"[B, H, T, d_h] \to [B, T, H, d_h]", "return z.transpose(1, 2).reshape(", True,
    ),
    Lesson(
        "merge", "Merge", ("B", "T", "C"),
        "The H blocks of a position become one row of C numbers. A view can seldom say that of "
        "transposed memory, so reshape copies the numbers together where it must.",
        r"[\,z_0 \mid z_1 \mid \dots \mid z_{H-1}\,]", "return z.transpose(1, 2).reshape(", True,
    ),
    Lesson(
        "output", "Output projection", ("B", "T", "C"),
        "W_O mixes the heads: until here each slice of columns belongs to one head, from here on "
        "to all.",
        r"[\,z_0 \mid \dots \mid z_{H-1}\,]\,W_O + b_O", "self.W_O(merge_heads(z))", False,
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One step of one layer: its lesson and what it left behind."""

    lesson: Lesson
    tensor: Tensor = field(repr=False)
    flops: int  # a multiply-add counts two
    copied: bool  # whether it has storage of its own

    @property
    def shape(self) -> list[int]:
        """The size of each axis."""
        return list(self.tensor.shape)

    @property
    def strides(self) -> list[int]:
        """How many elements further in memory the next index of each axis lies."""
        return list(self.tensor.stride())

    @property
    def dtype(self) -> str:
        """The type of its numbers, as torch names it without its prefix."""
        return str(self.tensor.dtype).removeprefix("torch.")

    @property
    def n_bytes(self) -> int:
        """Bytes of its numbers; those of a view are bytes of another tensor."""
        return self.tensor.numel() * self.tensor.element_size()


@torch.inference_mode()
def walk(attention: MultiHeadAttention, x: Tensor) -> tuple[Step, ...]:
    """Every step of the layer on `x` `[B, T, C]`, in the order of LESSONS.

    The last equals `attention(x)`. In the masked scores a hidden key is -inf.
    """
    steps = []
    before: Tensor | None = None
    for lesson, (tensor, flops) in zip(LESSONS, _tensors(attention, x), strict=True):
        copied = before is None or not _same_storage(before, tensor)
        steps.append(Step(lesson, tensor, flops, copied))
        before = tensor
    return tuple(steps)


def random_layer(
    d_model: int, n_heads: int, B: int, T: int, *, seed: int = 0
) -> tuple[MultiHeadAttention, Tensor]:
    """A layer with seeded random weights and an input `[B, T, C]` for it.

    Raises ShapeError where d_model does not divide into n_heads.
    """
    attention = MultiHeadAttention(d_model, n_heads).requires_grad_(False)
    generator = torch.Generator().manual_seed(seed)
    for weight in attention.parameters():
        weight.normal_(std=d_model**-0.5, generator=generator)
    return attention, torch.randn(B, T, d_model, generator=generator)


def owners(attention: MultiHeadAttention, step: Step, heads: Sequence[int]) -> tuple[int, ...]:
    """The head that owns each block of columns, or each matrix, of a step; empty for none.

    `heads` are the names of the layer's heads. Shared key/value heads go by their first query head.
    """
    if not step.lesson.by_head:
        return ()
    if step.lesson.name != "project":
        return tuple(heads)
    shared = tuple(heads[:: attention.n_heads // attention.n_kv_heads])
    return tuple(heads) + 2 * shared


def _tensors(attention: MultiHeadAttention, x: Tensor) -> Iterator[tuple[Tensor, int]]:
    B, T, C = x.shape
    H, G, d_h = attention.n_heads, attention.n_kv_heads, attention.d_head
    cells, pairs = B * T, B * H * T * T
    yield x, 0
    fused = attention.W_QKV(x)
    yield fused, 2 * cells * C * (H + 2 * G) * d_h
    q, k, v = fused.split([H * d_h, G * d_h, G * d_h], dim=-1)
    yield q, 0
    yield q.view(B, T, H, d_h), 0
    q, k, v = (
        part.view(B, T, n, d_h).transpose(1, 2) for part, n in ((q, H), (k, G), (v, G))
    )  # fmt: skip
    k, v = repeat_heads(k, H), repeat_heads(v, H)
    yield q, 0
    raw = q @ k.transpose(-2, -1)
    yield raw, 2 * pairs * d_h
    scores = raw * attention.scale
    yield scores, pairs
    allowed = causal_mask(T, T, x.device) if attention.causal else torch.ones_like(raw).bool()
    masked = scores.masked_fill(~allowed, -torch.inf)
    yield masked, 0
    pattern = masked.softmax(dim=-1)
    yield pattern, (SOFTMAX_FLOPS - 1) * pairs  # the scale before it is counted there
    z = pattern @ v
    yield z, 2 * pairs * d_h
    back = z.transpose(1, 2)
    yield back, 0
    merged = back.reshape(B, T, H * d_h)
    yield merged, 0
    yield attention.W_O(merged), 2 * cells * H * d_h * C


def _same_storage(a: Tensor, b: Tensor) -> bool:
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


@cache
def code_line(beginning: str) -> tuple[int, str]:
    """The number and the text of the line of attention.py that holds `beginning`.

    Raises LookupError where no line does: the lesson and the code have parted.
    """
    for number, line in enumerate(inspect.getsource(source).splitlines(), start=1):
        if beginning in line:
            return number, line.strip()
    raise LookupError(f"attention.py has no line with {beginning!r}")
