"""Pass: one forward pass kept layer by layer, from which a change runs only the layers above it.

A head is removed by replacing its z before W_O; the bias b_O stays, since it belongs to no head:

    attn_out = sum_h (g_h z_h + (1 - g_h) r_h) W_O^h + b_O        g_h = 0 removes head h

`Replacement` is r, what stands in for a removed head; `replacements` makes one.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from mha_viz.attention import (
    MultiHeadAttention,
    attention_scores,
    causal_mask,
    masked_softmax,
    repeat_heads,
)
from mha_viz.errors import ShapeError
from mha_viz.gpt2 import GPT2, Block
from mha_viz.head import Head
from mha_viz.model import Model
from mha_viz.pruning.inputs import Text, gate_without, token_ids
from mha_viz.trace import Array

VOCABULARY_PART = 4096  # unembedded at a time: logits that fit the processor's cache, not [T, V]


@dataclass(frozen=True, slots=True, eq=False)
class Replacement:
    """What replaces the z of a removed head: `[L, H, T, d_h]`, or T = 1 for all positions alike.

    None is zero. `method` is one of `replacements.METHODS`.
    """

    method: str = "zero"
    z: Tensor | None = field(default=None, repr=False)

    def of(self, layer: int, heads: list[int], T: int) -> Tensor | None:
        """The part for a text of T tokens, `[H, T or 1, d_h]`. Raises ShapeError if it is short."""
        if self.z is None:
            return None
        if 1 < self.z.shape[2] < T:
            raise ShapeError(
                f"The replacement holds {self.z.shape[2]} positions and the text has {T}: make one "
                f"of length {T}."
            )
        return self.z[layer, heads, :T]


ZERO = Replacement()


@dataclass(frozen=True, slots=True, eq=False)
class Pass:
    """What a network did with one text under a gate; it takes O(L T C) of memory.

    Two passes with the same gate and replacement hold the same bits, whatever they came from.
    """

    network: GPT2 = field(repr=False)
    ids: Tensor = field(repr=False)  # [1, T]
    gate: Tensor  # [L, H], 1 where a head is as it was and 0 where it is removed
    replacement: Replacement
    resid: tuple[Tensor, ...] = field(repr=False)  # L + 1 of [1, T, C]: around each layer

    @classmethod
    @torch.inference_mode()
    def of(
        cls,
        model: Model,
        text: Text,
        *,
        gate: Tensor | Array | None = None,
        replacement: Replacement = ZERO,
    ) -> "Pass":
        """The pass over a text, or over ids, as `token_ids` takes them.

        Raises TextError, and ShapeError for a gate that is not `[L, H]` or a short replacement.
        """
        ids, network = token_ids(model, text), model.network
        resid = (network.wte(ids) + network.wpe.weight[: ids.shape[1]],)
        return cls._upwards(network, ids, as_gate(network, gate), replacement, resid)

    @torch.inference_mode()
    def gated(self, gate: Tensor | Array | None, replacement: Replacement = ZERO) -> "Pass":
        """The same text under another gate: the layers below the first that changes are reused.

        Raises ShapeError for a gate that is not `[L, H]` and for a replacement that is short.
        """
        new = as_gate(self.network, gate)
        first = self._first_change(new, replacement)
        return self._upwards(self.network, self.ids, new, replacement, self.resid[: first + 1])

    def without(self, heads: Iterable[Head], replacement: Replacement = ZERO) -> "Pass":
        """The same text with these heads removed, and no others. Raises HeadNotFound."""
        return self.gated(gate_without(self.network.config, heads), replacement)

    @torch.inference_mode()
    def losses(self) -> Array:
        """`[T - 1]`: -ln p of each token from position 1 on, in nats."""
        found: Array = token_losses(self.network, self.resid[-1], self.ids)[0].cpu().numpy()
        return found

    @property
    def loss(self) -> float:
        """The mean of `losses`, in nats a token; its exp is the perplexity."""
        return float(self.losses().mean(dtype=np.float64))

    @torch.inference_mode()
    def best_tokens(self) -> Tensor:
        """`[T]`: the likeliest next token at each position."""
        x = self.network.ln_f(self.resid[-1][0])
        best = [
            (x @ rows.T).max(-1) for rows in torch.split(self.network.W_U.weight, VOCABULARY_PART)
        ]
        values, ids = (torch.stack(parts) for parts in zip(*best, strict=True))
        part = values.argmax(0, keepdim=True)
        return (ids.gather(0, part) + part * VOCABULARY_PART)[0]

    def _first_change(self, gate: Tensor, replacement: Replacement) -> int:
        for layer, (old, new) in enumerate(zip(self.gate, gate, strict=True)):
            other_replacement = replacement is not self.replacement and not bool((new == 1).all())
            if other_replacement or not torch.equal(old, new):
                return layer
        return len(gate)

    @classmethod
    def _upwards(
        cls,
        network: GPT2,
        ids: Tensor,
        gate: Tensor,
        replacement: Replacement,
        resid: tuple[Tensor, ...],
    ) -> "Pass":
        for layer in range(len(resid) - 1, network.config.n_layers):
            resid = (*resid, run_layer(network, layer, resid[-1], gate, replacement))
        return cls(network, ids, gate, replacement, resid)


def run_layer(
    network: GPT2, layer: int, resid: Tensor, gate: Tensor, replacement: Replacement
) -> Tensor:
    """The residual stream `[B, T, C]` after a layer, under a gate `[L, H]`."""
    block, kept = network.blocks[layer], network.config.kept_heads(layer)
    z = head_outputs(block, resid)
    out = merged(block.attn, z, gate[layer, kept], replacement.of(layer, kept, resid.shape[1]))
    return after_attention(block, resid + out)


def head_outputs(block: Block, resid: Tensor) -> Tensor:
    """The z `[B, H, T, d_h]` of a block's heads."""
    return block.attn.attend(*block.attn.project(block.ln_1(resid)))


def merged(attn: MultiHeadAttention, z: Tensor, gate: Tensor, replacement: Tensor | None) -> Tensor:
    """What attention adds to the residual stream `[B, T, C]`, under a gate `[H]` or `[B, H]`."""
    if replacement is None:
        return attn.merge(z, head_gate=gate)
    share = gate[..., None, None].to(z.dtype)
    return attn.merge(z * share + replacement * (1 - share))


def pattern_and_values(block: Block, resid: Tensor) -> tuple[Tensor, Tensor]:
    """The patterns `[H, T, T]` and v `[H, T, d_h]` of a block that reads `[1, T, C]`."""
    q, k, v = block.attn.project(block.ln_1(resid))
    H, T = q.shape[1:3]
    scores = attention_scores(q, repeat_heads(k, H), block.attn.scale)
    return masked_softmax(scores, causal_mask(T, T, q.device))[0], repeat_heads(v, H)[0]


def after_attention(block: Block, resid: Tensor) -> Tensor:
    """What the MLP of a block makes of the residual stream `[B, T, C]` after its attention."""
    out: Tensor = resid + block.mlp(block.ln_2(resid))
    return out


def token_losses(network: GPT2, resid: Tensor, ids: Tensor, first: int = 1) -> Tensor:
    """`[B, T - first]`: -ln p of the tokens from position `first` on; `resid` is the last stream.

    The logits exist a part of the vocabulary at a time; ln sum exp of all is that of the parts'.
    """
    x = network.ln_f(resid[:, first - 1 : -1])
    W_U, targets = network.W_U.weight, ids[0, first:]
    parts = [(x @ rows.T).float().logsumexp(-1) for rows in torch.split(W_U, VOCABULARY_PART)]
    total = torch.stack(parts).logsumexp(0)
    right: Tensor = (x.float() * W_U[targets].float()).sum(-1)
    return total - right


def as_gate(network: GPT2, gate: Tensor | Array | None) -> Tensor:
    """A gate `[L, H]` of float32 where the network computes; ones for None. Raises ShapeError."""
    shape = [network.config.n_layers, network.config.n_heads]
    device = network.wte.weight.device
    if gate is None:
        return torch.ones(shape, device=device)
    # A copy: what is kept must not change with what a caller holds.
    own = torch.as_tensor(gate).detach().to(device, torch.float32, copy=True)
    if list(own.shape) != shape:
        raise ShapeError(f"The gate has shape {list(own.shape)}; expected [L, H] = {shape}.")
    return own
