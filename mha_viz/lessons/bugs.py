"""Multi-head attention with one bug in it, to show what each line of the correct module does.

A bug replaces the same line in every layer of a GPT-2, as if the module were written that way. The
weights stay the same.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from mha_viz.attention import (
    MultiHeadAttention,
    attention_scores,
    causal_mask,
    masked_softmax,
    repeat_heads,
)
from mha_viz.callbacks import OnLayer
from mha_viz.errors import ShapeError
from mha_viz.network import Network

SPLIT = "q, k, v = W_QKV(x).split(sizes, dim=-1)"
SCORES = "scores = q @ k.transpose(-2, -1) * scale"


@dataclass(frozen=True, slots=True)
class Bug:
    """The correct line, the wrong one ("" if the line is missing), and the effect.

    `tensor` names the field of AttentionSteps that the line computes. With a bug that reads ahead,
    a position can depend on the tokens after it.
    """

    correct: str
    wrong: str
    tensor: str
    effect: str
    reads_ahead: bool = False


BUGS: dict[str, Bug] = {
    "no scale": Bug(
        SCORES,
        "scores = q @ k.transpose(-2, -1)",
        "scores",
        "The scale is 1 / √d_h in GPT-2. Without it, scores are too large, so the softmax gives "
        "the largest score of a row too much weight.",
    ),
    "root of C": Bug(
        "scale = d_h**-0.5",
        "scale = C**-0.5",
        "scores",
        "A score is a sum of d_h products, not of C. Divided by √C, scores are too small, so the "
        "weights of a row are too even.",
    ),
    "no mask": Bug(
        "scores = scores.masked_fill(~allowed, -inf)",
        "",
        "scores",
        "Every position also looks at the tokens after it, which the model never saw in training.",
        reads_ahead=True,
    ),
    "mask after softmax": Bug(
        "pattern = scores.masked_fill(~allowed, -inf).softmax(-1)",
        "pattern = scores.softmax(-1).masked_fill(~allowed, 0)",
        "pattern",
        "The softmax shares the weight among all tokens, and the mask then takes away the part of "
        "the later ones: a row no longer adds up to 1, and its sum depends on what comes later.",
        reads_ahead=True,
    ),
    "softmax over queries": Bug(
        "pattern = scores.softmax(-1)",
        "pattern = scores.softmax(-2)",
        "pattern",
        "Each column adds up to 1 instead of each row, so the weights of a position depend on the "
        "queries of later ones.",
        reads_ahead=True,
    ),
    "no transpose": Bug(
        "q = q.view(B, T, H, d_h).transpose(1, 2)",
        "q = q.reshape(B, H, T, d_h)",
        "q",
        "The shape is right, but the values are not: each head gets blocks of neighbouring "
        "positions instead of its own columns. The same happens to k and v.",
        reads_ahead=True,
    ),
    "no transpose back": Bug(
        "z = z.transpose(1, 2).reshape(B, T, C)",
        "z = z.reshape(B, T, C)",
        "merged",
        "The heads are merged as they lie in memory: each position receives values that belong to "
        "other positions. The patterns of the first layer are right; every later layer reads what "
        "the first one wrote.",
        reads_ahead=True,
    ),
    "q and k swapped": Bug(
        SCORES,
        "scores = k @ q.transpose(-2, -1) * scale",
        "scores",
        "Queries and keys change places, so the scores are transposed.",
    ),
    "k, v, q order": Bug(
        SPLIT,
        "k, v, q = W_QKV(x).split(sizes, dim=-1)",
        "q",
        "The columns of W_QKV are used in another order than the one they were trained in: the "
        "columns of the queries now give keys, those of the keys values, those of the values "
        "queries.",
    ),
    "v, k, q order": Bug(
        SPLIT,
        "v, k, q = W_QKV(x).split(sizes, dim=-1)",
        "q",
        "The columns of W_QKV are used in another order than the one they were trained in: queries "
        "and values change places.",
    ),
    "no W_O": Bug(
        "out = W_O(z)",
        "out = z",
        "out",
        "The heads are only written side by side: each writes into its own d_h columns of the "
        "residual stream, in directions that no later layer was trained to read.",
    ),
}


@dataclass(frozen=True, slots=True, eq=False)
class AttentionSteps:
    """Every tensor of one call, as the module computes it with a bug or without."""

    q: Tensor  # [B, H, T, d_h]
    k: Tensor  # [B, H, T, d_h]
    v: Tensor  # [B, H, T, d_h]
    scores: Tensor  # [B, H, T, T], scaled, before the mask
    pattern: Tensor  # [B, H, T, T]
    z: Tensor  # [B, H, T, d_h]
    merged: Tensor  # [B, T, H d_h]
    out: Tensor  # [B, T, C]


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """The result of one forward pass: the patterns of one layer and the logits of all positions."""

    pattern: Tensor  # [H, T, T]
    logits: Tensor  # [T, V]


def attention_with_bug(attention: MultiHeadAttention, x: Tensor, bug: str | None) -> AttentionSteps:
    """Every step of causal self-attention on x `[B, T, C]` with one bug, or with None.

    Raises ShapeError for a bug that is not in BUGS.
    """
    if bug is not None and bug not in BUGS:
        raise ShapeError(f"There is no bug `{bug}`; choose one of {', '.join(BUGS)}.")
    B, T, _ = x.shape
    H = attention.n_heads
    q, k, v = _heads(attention, x, bug)
    if bug == "q and k swapped":
        q, k = k, q
    scores = attention_scores(q, k, _scale(attention, bug))
    pattern = _pattern(scores, causal_mask(T, T, x.device), bug)
    z = pattern.to(v.dtype) @ v
    rows = z if bug == "no transpose back" else z.transpose(1, 2)
    merged = rows.reshape(B, T, H * attention.d_head)
    out = merged if bug == "no W_O" else attention.W_O(merged)
    return AttentionSteps(q, k, v, scores, pattern, z, merged, out)


def _heads(
    attention: MultiHeadAttention, x: Tensor, bug: str | None
) -> tuple[Tensor, Tensor, Tensor]:
    """q, k and v, `[B, H, T, d_h]` each."""
    B, T, _ = x.shape
    H, G, d_h = attention.n_heads, attention.n_kv_heads, attention.d_head
    order = bug.removesuffix(" order").split(", ") if bug and bug.endswith(" order") else "qkv"
    n_heads = {"q": H, "k": G, "v": G}
    columns = attention.W_QKV(x).split([n_heads[name] * d_h for name in order], dim=-1)

    def as_heads(name: str) -> Tensor:
        part, n = columns[order.index(name)], n_heads[name]
        if bug == "no transpose":
            return repeat_heads(part.reshape(B, n, T, d_h), H)
        return repeat_heads(part.view(B, T, n, d_h).transpose(1, 2), H)

    return as_heads("q"), as_heads("k"), as_heads("v")


def _scale(attention: MultiHeadAttention, bug: str | None) -> float:
    if bug == "no scale":
        return 1.0
    scale: float = attention.scale
    if bug == "root of C":  # instead of the root of d_h; the factor of a layer stays
        scale *= math.sqrt(attention.d_head / attention.d_model)
    return scale


def _pattern(scores: Tensor, allowed: Tensor, bug: str | None) -> Tensor:
    """`[B, H, T, T]`: the softmax over the allowed keys."""
    if bug == "no mask":
        return scores.softmax(-1)
    if bug == "mask after softmax":
        return scores.softmax(-1).masked_fill(~allowed, 0.0)
    if bug == "softmax over queries":
        return masked_softmax(scores.transpose(-2, -1), allowed.T).transpose(-2, -1)
    return masked_softmax(scores, allowed)


@torch.inference_mode()
def run_with_bug(
    network: Network,
    ids: Tensor,
    bug: str | None,
    layer: int,
    *,
    on_layer: OnLayer | None = None,
) -> Run:
    """Runs the network on ids `[1, T]` with the bug in every layer; None is the correct network.

    The patterns are those of `layer`. `on_layer` is called with the number of finished layers; an
    exception that it raises ends the run.
    """
    resid = network.embed(ids)
    pattern_of_layer = resid.new_empty(0)
    for number, block in enumerate(network.blocks):
        steps = attention_with_bug(block.attn, block.attention_input(resid), bug)
        if number == layer:
            pattern_of_layer = steps.pattern[0]
        resid = block.after_attention(resid, steps.out)
        if on_layer is not None:
            on_layer(number + 1)
    return Run(pattern=pattern_of_layer, logits=network.unembed(resid[0]))


def divergence(before: Tensor, after: Tensor) -> Tensor:
    """KL(before || after) in nats between the distributions of two sets of logits `[..., V]`."""
    log_p, log_q = before.float().log_softmax(-1), after.float().log_softmax(-1)
    return (log_p.exp() * (log_p - log_q)).sum(-1)
