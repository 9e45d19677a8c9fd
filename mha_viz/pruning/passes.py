"""Pass: one forward pass kept layer by layer. After a change, only the layers above it run again.

A head is ablated by replacing its z before W_O; the bias b_O stays, since it belongs to no head:

    attn_out = sum_h (g_h z_h + (1 - g_h) r_h) W_O^h + b_O        g_h = 0 ablates head h

`Replacement` holds r, the replacement value; `replacements.make_replacement` makes one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count

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
from mha_viz.head import Head
from mha_viz.model import Model
from mha_viz.network import Block, Network
from mha_viz.pruning.inputs import Text, gate_without, token_ids
from mha_viz.trace import Array

VOCABULARY_PART = 4096  # tokens unembedded at a time: logits that fit the CPU's cache, not [T, V]


@dataclass(frozen=True, slots=True, eq=False)
class Replacement:
    """The value that replaces an ablated head's z: `[L, H, T, d_h]`, or T = 1 for all positions.

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
                f"The replacement has {self.z.shape[2]} positions and the text has {T}. Make one "
                f"of length {T}."
            )
        return self.z[layer, heads, :T]


ZERO = Replacement()


@dataclass(frozen=True, slots=True, eq=False)
class Pass:
    """The residual stream of one text under a gate; it takes O(L T C) of memory.

    Two passes with the same gate and replacement are bitwise equal, however they were made.
    """

    network: Network = field(repr=False)
    ids: Tensor = field(repr=False)  # [1, T]
    gate: Tensor  # [L, H], 1 for an intact head and 0 for an ablated one
    replacement: Replacement
    resid: tuple[Tensor, ...] = field(repr=False)  # L + 1 of [1, T, C]: before and after each layer

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
        """The pass over a text or over token ids.

        Raises TextError as `token_ids` does, and ShapeError for a gate that is not `[L, H]` or a
        short replacement.
        """
        ids, network = token_ids(model, text), model.network
        return cls._upwards(
            network, ids, as_gate(network, gate), replacement, (network.embed(ids),)
        )

    @torch.inference_mode()
    def gated(self, gate: Tensor | Array | None, replacement: Replacement = ZERO) -> "Pass":
        """The same text under another gate; layers below the first change are reused.

        Raises ShapeError for a gate that is not `[L, H]` and for a short replacement.
        """
        new = as_gate(self.network, gate)
        first = self._first_change(new, replacement)
        return self._upwards(self.network, self.ids, new, replacement, self.resid[: first + 1])

    def without(self, heads: Iterable[Head], replacement: Replacement = ZERO) -> "Pass":
        """The same text with these heads ablated, and no others. Raises HeadNotFound."""
        return self.gated(gate_without(self.network.config, heads), replacement)

    @torch.inference_mode()
    def losses(self) -> Array:
        """`[T - 1]`: -ln p of each token from position 1 on, in nats."""
        losses: Array = token_losses(self.network, self.resid[-1], self.ids)[0].cpu().numpy()
        return losses

    @property
    def loss(self) -> float:
        """The mean of `losses`, in nats per token; exp(loss) is the perplexity."""
        return float(self.losses().mean(dtype=np.float64))

    @torch.inference_mode()
    def best_tokens(self) -> Tensor:
        """`[T]`: the most likely next token at each position."""
        x = self.network.final_norm(self.resid[-1][0])
        best = [(x @ rows.T).max(-1) for rows in vocabulary_parts(self.network)]
        values, ids = (torch.stack(parts) for parts in zip(*best, strict=True))
        part = values.argmax(0, keepdim=True)
        return (ids.gather(0, part) + part * VOCABULARY_PART)[0]

    def _first_change(self, gate: Tensor, replacement: Replacement) -> int:
        """The first layer whose output differs under the new gate and replacement."""
        for layer, (old, new) in enumerate(zip(self.gate, gate, strict=True)):
            replaced = replacement is not self.replacement and not bool((new == 1).all())
            if replaced or not torch.equal(old, new):
                return layer
        return len(gate)

    @classmethod
    def _upwards(
        cls,
        network: Network,
        ids: Tensor,
        gate: Tensor,
        replacement: Replacement,
        resid: tuple[Tensor, ...],
    ) -> "Pass":
        for layer in range(len(resid) - 1, network.config.n_layers):
            resid = (*resid, run_layer(network, layer, resid[-1], gate, replacement))
        return cls(network, ids, gate, replacement, resid)


def run_layer(
    network: Network, layer: int, resid: Tensor, gate: Tensor, replacement: Replacement
) -> Tensor:
    """The residual stream `[B, T, C]` after a layer, under a gate `[L, H]`."""
    block, kept = network.blocks[layer], network.config.kept_heads(layer)
    z, instead = block.heads(resid).z, replacement.of(layer, kept, resid.shape[1])
    return block.after_attention(resid, attention_output(block.attn, z, gate[layer, kept], instead))


def attention_output(
    attn: MultiHeadAttention, z: Tensor, gate: Tensor, replacement: Tensor | None
) -> Tensor:
    """What attention adds to the residual stream, `[B, T, C]`, under a gate `[H]` or `[B, H]`."""
    if replacement is None:
        return attn.merge(z, head_gate=gate)
    share = gate[..., None, None].to(z.dtype)
    return attn.merge(z * share + replacement * (1 - share))


def pattern_and_values(block: Block, resid: Tensor) -> tuple[Tensor, Tensor]:
    """The patterns `[H, T, T]` and v `[H, T, d_h]` of a block, for its input `[1, T, C]`."""
    q, k, v = block.attn.project(block.attention_input(resid))
    H, T = q.shape[1:3]
    scores = attention_scores(q, repeat_heads(k, H), block.attn.scale)
    return masked_softmax(scores, causal_mask(T, T, q.device))[0], repeat_heads(v, H)[0]


def token_losses(network: Network, resid: Tensor, ids: Tensor, first: int = 1) -> Tensor:
    """`[B, T - first]`: -ln p of the tokens from position `first` on, in nats.

    `resid` `[B, T, C]` is the stream after the last layer, `ids` `[1, T]`. It is the log-softmax of
    the model's logits, in float32 whatever the weights are. Only the logits of one part of the
    vocabulary exist at a time; the log-sum-exp of the parts gives that of all.
    """
    x, targets = network.final_norm(resid[:, first - 1 : -1]), ids[0, first:]
    totals, right = [], x.new_empty(x.shape[:2], dtype=torch.float32)
    for start, rows in zip(count(step=VOCABULARY_PART), vocabulary_parts(network), strict=False):
        logits = (x @ rows.T).float()
        totals.append(logits.logsumexp(-1))
        here = (targets // VOCABULARY_PART * VOCABULARY_PART == start).nonzero()[:, 0]
        right[:, here] = logits[:, here, targets[here] - start]
    return torch.stack(totals).logsumexp(0) - right


def vocabulary_parts(network: Network) -> Sequence[Tensor]:
    """The rows of W_U in parts of at most VOCABULARY_PART tokens."""
    return torch.split(network.W_U.weight, VOCABULARY_PART)


def as_gate(network: Network, gate: Tensor | Array | None) -> Tensor:
    """A float32 gate `[L, H]` on the network's device; ones for None. Raises ShapeError."""
    shape = [network.config.n_layers, network.config.n_heads]
    if gate is None:
        return torch.ones(shape, device=network.device)
    # A copy, so that a pass does not change when the caller changes its array.
    own = torch.as_tensor(gate).detach().to(network.device, torch.float32, copy=True)
    if list(own.shape) != shape:
        raise ShapeError(f"The gate has shape {list(own.shape)}; expected [L, H] = {shape}.")
    return own
