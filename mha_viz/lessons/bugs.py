"""Multi-head attention with one mistake in it: what each line of the right one is good for.

A fault replaces the same line in every layer of a GPT-2, as it would if the module were written
that way. The weights stay; only what is done with them changes.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from mha_viz.attention import MultiHeadAttention, causal_mask, masked_softmax, repeat_heads
from mha_viz.errors import ShapeError
from mha_viz.gpt2 import GPT2


@dataclass(frozen=True, slots=True)
class Fault:
    """A mistake: the line as it should be, as it is, and what that does."""

    right: str
    wrong: str
    sentence: str


FAULTS: dict[str, Fault] = {
    "no scale": Fault(
        "scores = q @ k.transpose(-2, -1) / d_h**0.5",
        "scores = q @ k.transpose(-2, -1)",
        "Scores are as much too large as the root of d_h, and the softmax puts nearly all weight "
        "on one key.",
    ),
    "no mask": Fault(
        "scores = scores.masked_fill(~allowed, -inf)",
        "",
        "Every position looks at the tokens after it as well, which training never showed the "
        "model.",
    ),
    "no transpose": Fault(
        "q = q.view(B, T, H, d_h).transpose(1, 2)",
        "q = q.reshape(B, H, T, d_h)",
        "The shape is right and the numbers are not: a head gets blocks of neighbouring positions "
        "instead of its own columns.",
    ),
    "merge as it lies": Fault(
        "z = z.transpose(1, 2).reshape(B, T, C)",
        "z = z.reshape(B, T, C)",
        "The patterns are right, and each position is handed numbers that belong to other "
        "positions.",
    ),
    "q and k swapped": Fault(
        "scores = q @ k.transpose(-2, -1)",
        "scores = k @ q.transpose(-2, -1)",
        "What a token looks for and what it offers change places: the scores are transposed.",
    ),
}


@dataclass(frozen=True, slots=True, eq=False)
class Damage:
    """A run with a fault (or none): patterns of one layer and the logits everywhere."""

    pattern: Tensor  # [H, T, T] of the layer asked for
    logits: Tensor  # [T, V]


def faulty(attention: MultiHeadAttention, x: Tensor, fault: str | None) -> tuple[Tensor, Tensor]:
    """The pattern `[B, H, T, T]` and the output `[B, T, C]` with one fault, or with none.

    Raises ShapeError for a fault that is not in FAULTS.
    """
    if fault is not None and fault not in FAULTS:
        raise ShapeError(f"There is no fault `{fault}`; known are {', '.join(FAULTS)}.")
    B, T, _ = x.shape
    H, G, d_h = attention.n_heads, attention.n_kv_heads, attention.d_head

    def heads(part: Tensor, n: int) -> Tensor:
        if fault == "no transpose":
            return part.reshape(B, n, T, d_h)
        return part.view(B, T, n, d_h).transpose(1, 2)

    q, k, v = attention.W_QKV(x).split([H * d_h, G * d_h, G * d_h], dim=-1)
    q = heads(q, H)
    k, v = (repeat_heads(heads(part, G), H) for part in (k, v))
    if fault == "q and k swapped":
        q, k = k, q
    scores = q @ k.transpose(-2, -1)
    if fault != "no scale":
        scores = scores * attention.scale
    pattern = masked_softmax(scores, None if fault == "no mask" else causal_mask(T, T, x.device))
    z = pattern @ v
    merged = (
        z.reshape(B, T, -1) if fault == "merge as it lies" else z.transpose(1, 2).reshape(B, T, -1)
    )
    return pattern, attention.W_O(merged)


@torch.inference_mode()
def run_with(
    network: GPT2,
    ids: Tensor,
    fault: str | None,
    layer: int,
    *,
    on_layer: Callable[[int], None] | None = None,
) -> Damage:
    """What the network makes of ids `[1, T]` with the fault in every layer.

    `on_layer` is told the number of layers that are done, and may raise to stop.
    """
    resid = network.wte(ids) + network.wpe.weight[: ids.shape[1]]
    seen = resid.new_empty(0)
    for number, block in enumerate(network.blocks):
        pattern, out = faulty(block.attn, block.ln_1(resid), fault)
        if number == layer:
            seen = pattern[0]
        resid = resid + out
        resid = resid + block.mlp(block.ln_2(resid))
        if on_layer is not None:
            on_layer(number + 1)
    return Damage(pattern=seen, logits=network.W_U(network.ln_f(resid))[0])


def divergence(right: Tensor, wrong: Tensor) -> Tensor:
    """KL(right || wrong) in nats of the distributions of logits `[..., V]`: how far they parted."""
    log_p, log_q = right.float().log_softmax(-1), wrong.float().log_softmax(-1)
    return (log_p.exp() * (log_p - log_q)).sum(-1)
