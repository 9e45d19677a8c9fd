"""Multi-head attention with one bug in it: it shows what each line of the correct module does.

A bug replaces the same line in every layer of a GPT-2, as if the module were written that way. The
weights stay the same.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from mha_viz.attention import MultiHeadAttention, causal_mask, masked_softmax, repeat_heads
from mha_viz.callbacks import OnLayer
from mha_viz.errors import ShapeError
from mha_viz.network import Network


@dataclass(frozen=True, slots=True)
class Bug:
    """The correct line, the wrong one ("" where the line is missing), and what that does."""

    correct: str
    wrong: str
    effect: str


BUGS: dict[str, Bug] = {
    "no scale": Bug(
        "scores = q @ k.transpose(-2, -1) / d_h**0.5",
        "scores = q @ k.transpose(-2, -1)",
        "Scores are √d_h times too large, so the softmax puts nearly all its weight on one key.",
    ),
    "no mask": Bug(
        "scores = scores.masked_fill(~allowed, -inf)",
        "",
        "Every position also looks at the tokens after it, which the model never saw in training.",
    ),
    "no transpose": Bug(
        "q = q.view(B, T, H, d_h).transpose(1, 2)",
        "q = q.reshape(B, H, T, d_h)",
        "The shape is right, but the values are not: each head gets blocks of neighbouring "
        "positions instead of its own columns.",
    ),
    "no transpose back": Bug(
        "z = z.transpose(1, 2).reshape(B, T, C)",
        "z = z.reshape(B, T, C)",
        "The patterns are right, but each position receives values that belong to other positions.",
    ),
    "q and k swapped": Bug(
        "scores = q @ k.transpose(-2, -1)",
        "scores = k @ q.transpose(-2, -1)",
        "What a token looks for and how it can be found change places: the scores are transposed.",
    ),
}


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """The result of one forward pass: the patterns of one layer and the logits of all positions."""

    pattern: Tensor  # [H, T, T]
    logits: Tensor  # [T, V]


def attention_with_bug(
    attention: MultiHeadAttention, x: Tensor, bug: str | None
) -> tuple[Tensor, Tensor]:
    """The pattern `[B, H, T, T]` and the output `[B, T, C]` with one bug, or with none.

    Raises ShapeError for a bug that is not in BUGS.
    """
    if bug is not None and bug not in BUGS:
        raise ShapeError(f"There is no bug `{bug}`; choose one of {', '.join(BUGS)}.")
    B, T, _ = x.shape
    H, G, d_h = attention.n_heads, attention.n_kv_heads, attention.d_head

    def as_heads(columns: Tensor, n_heads: int) -> Tensor:
        if bug == "no transpose":
            return columns.reshape(B, n_heads, T, d_h)
        return columns.view(B, T, n_heads, d_h).transpose(1, 2)

    q, k, v = attention.W_QKV(x).split([H * d_h, G * d_h, G * d_h], dim=-1)
    q = as_heads(q, H)
    k, v = (repeat_heads(as_heads(columns, G), H) for columns in (k, v))
    if bug == "q and k swapped":
        q, k = k, q
    scores = q @ k.transpose(-2, -1)
    if bug != "no scale":
        scores = scores * attention.scale
    pattern = masked_softmax(scores, None if bug == "no mask" else causal_mask(T, T, x.device))
    z = pattern @ v
    if bug != "no transpose back":
        z = z.transpose(1, 2)
    return pattern, attention.W_O(z.reshape(B, T, -1))


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
        pattern, out = attention_with_bug(block.attn, block.attention_input(resid), bug)
        if number == layer:
            pattern_of_layer = pattern[0]
        resid = block.after_attention(resid, out)
        if on_layer is not None:
            on_layer(number + 1)
    return Run(pattern=pattern_of_layer, logits=network.unembed(resid[0]))


def divergence(before: Tensor, after: Tensor) -> Tensor:
    """KL(before || after) in nats between the distributions of two sets of logits `[..., V]`."""
    log_p, log_q = before.float().log_softmax(-1), after.float().log_softmax(-1)
    return (log_p.exp() * (log_p - log_q)).sum(-1)
