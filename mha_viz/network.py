"""Network: the interface of a transformer to the rest of the package, and its only forward pass.

    resid = embed(ids)
    for each block:
        attn_out = attn(attention_input(resid))
        resid = resid + attn_out + mlp_output(resid, resid + attn_out)
    logits = final_norm(resid) @ W_U^T

A family of models (GPT-2 is one, in gpt2.py) defines its embedding, its norms and the input of its
MLP; the order of the steps is the same for all. Pruning, analysis and lessons run them one by one.

A forward pass never modifies the network: results are return values (`Run`), and interventions are
arguments (`head_gate`, `cache`). Any number of threads may use one network at the same time.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple, Self

import torch
from torch import Tensor, nn

from mha_viz.attention import KVCache, MultiHeadAttention, repeat_heads
from mha_viz.callbacks import OnLayer
from mha_viz.errors import ShapeError
from mha_viz.head import Head
from mha_viz.layers import Embedding, FrozenNorm


@dataclass(frozen=True, slots=True)
class NetworkConfig:
    """The sizes that every network has; each family adds its own fields."""

    n_layers: int
    n_heads: int
    d_model: int
    d_mlp: int
    n_positions: int
    vocab_size: int
    n_kv_heads: int | None = None  # G, if it differs from n_heads
    pruned_heads: tuple[tuple[int, ...], ...] = ()  # for each layer, ascending; () for none

    @property
    def d_head(self) -> int:
        """The width of one head."""
        return self.d_model // self.n_heads

    def kept_heads(self, layer: int) -> list[int]:
        """The heads of a layer that have not been pruned, in ascending order."""
        pruned = self.pruned_heads[layer] if self.pruned_heads else ()
        return [head for head in range(self.n_heads) if head not in pruned]

    def check_head(self, layer: int, head: int, *, model: str = "this model") -> None:
        """Raises HeadNotFound for a head that `model` does not have, or that has been pruned."""
        kept = self.kept_heads(layer) if 0 <= layer < self.n_layers else ()
        Head(layer, head).check(self.n_layers, self.n_heads, kept, model=model)

    def scale(self, layer: int) -> float:
        """The factor that multiplies q @ k^T in this layer."""
        scale: float = self.d_head**-0.5
        return scale


@dataclass(frozen=True, slots=True)
class Run:
    """The result of one forward pass; its memory grows with T, not with T x T."""

    qkv: Tensor  # [3, L, B, H, T, d_h]
    logits: Tensor  # [B, V], at the last position


class HeadTensors(NamedTuple):
    """What the heads of one block compute. G is H unless query heads share keys and values."""

    q: Tensor  # [B, H, T_q, d_h]
    k: Tensor  # [B, G, T_k, d_h]
    v: Tensor  # [B, G, T_k, d_h]
    z: Tensor  # [B, H, T_q, d_h], before the head gate and W_O


class Block(nn.Module, ABC):
    """One layer: attention and an MLP, which both read the residual stream and add to it."""

    attn: MultiHeadAttention

    @abstractmethod
    def attention_input(self, resid: Tensor) -> Tensor:
        """What attention reads, `[B, T, C]`: the normalised residual stream. Raises ShapeError."""

    @abstractmethod
    def mlp_output(self, resid_pre: Tensor, resid_mid: Tensor) -> Tensor:
        """What the MLP adds to the residual stream, `[B, T, C]`.

        `resid_pre` is the stream before the block and `resid_mid` the one after its attention.
        GPT-2 reads the second; a block whose attention and MLP run in parallel reads the first.
        """

    def forward(
        self, resid: Tensor, *, head_gate: Tensor | None = None, cache: KVCache | None = None
    ) -> Tensor:
        """The residual stream `[B, T, C]` after this block; `head_gate` is `[H]` or `[B, H]`."""
        x = self.attention_input(resid)
        return self.after_attention(resid, self.attn(x, head_gate=head_gate, cache=cache))

    def heads(
        self, resid: Tensor, *, cache: KVCache | None = None, last_only: bool = False
    ) -> HeadTensors:
        """q, k, v and z of the heads, for the residual stream `[B, T, C]` before this block.

        `cache` holds the keys and values of earlier positions. The new ones are appended, and k and
        v are then those of all positions so far. With `last_only`, z is computed for the last
        position alone, `[B, H, 1, d_h]`. `attn.merge` turns z into what attention adds.
        """
        q, k, v, past = self.attn.project_cached(self.attention_input(resid), None, cache)
        first = q.shape[2] - 1 if last_only else 0
        return HeadTensors(q, k, v, self.attn.attend(q[:, :, first:], k, v, past=past + first))

    def after_attention(self, resid: Tensor, attn_out: Tensor) -> Tensor:
        """The residual stream `[B, T, C]` after this block; `resid` is the stream before it.

        `attn_out` `[B, T, C]` is what attention adds, possibly modified; `resid` may have B = 1.
        Raises ShapeError for another shape.
        """
        if resid.shape[1:] != attn_out.shape[1:] or resid.shape[0] not in (1, attn_out.shape[0]):
            raise ShapeError(
                f"attn_out has shape {list(attn_out.shape)} and resid {list(resid.shape)}; both "
                "must be [B, T, C]."
            )
        resid_mid = resid + attn_out
        del attn_out  # memory that the MLP can use, unless the caller keeps it
        return resid_mid + self.mlp_output(resid, resid_mid)


class Network(nn.Module, ABC):
    """A decoder-only transformer. A family sets the attributes and defines the abstract steps."""

    config: NetworkConfig
    blocks: Sequence[Block]
    W_U: nn.Linear  # its weight is [V, C]; it has no bias

    @property
    @abstractmethod
    def token_embedding(self) -> Embedding:
        """The table `[V, C]` of token vectors, which W_U may share."""

    @abstractmethod
    def embed(self, ids: Tensor, offset: int = 0) -> Tensor:
        """The residual stream `[B, T, C]` before the first block, for ids `[B, T]`.

        `offset` is the position of the first token. Raises ShapeError: see `check_ids`.
        """

    @abstractmethod
    def final_norm(self, resid: Tensor) -> Tensor:
        """What W_U reads, `[..., C]`, for the residual stream `[..., C]`. Raises ShapeError."""

    @abstractmethod
    def frozen_final_norm(self, resid: Tensor) -> FrozenNorm:
        """`final_norm` in float32, with its scale frozen at that of `resid` `[C]`."""

    @property
    def device(self) -> torch.device:
        """The device that the network runs on."""
        return self.W_U.weight.device

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the weights."""
        return self.W_U.weight.dtype

    def unembed(self, resid: Tensor) -> Tensor:
        """The logits `[..., V]` of the residual stream `[..., C]` after the last block.

        For the stream after an earlier block this is the logit lens. Raises ShapeError.
        """
        logits: Tensor = self.W_U(self.final_norm(resid))
        return logits

    def residuals(
        self,
        ids: Tensor,
        *,
        head_gate: Tensor | None = None,
        offset: int = 0,
        cache: Sequence[KVCache] | None = None,
    ) -> Iterator[Tensor]:
        """The residual stream `[B, T, C]`: before the first block, then after each; L + 1 tensors.

        The arguments are those of `forward`.
        """
        if cache is not None:
            offset = cache[0].length
        resid = self.embed(ids, offset)
        yield resid
        for layer, block in enumerate(self.blocks):
            gate = self._gate_of(layer, head_gate)
            resid = block(resid, head_gate=gate, cache=None if cache is None else cache[layer])
            yield resid

    def forward(
        self,
        ids: Tensor,
        *,
        head_gate: Tensor | None = None,
        offset: int = 0,
        cache: Sequence[KVCache] | None = None,
    ) -> Tensor:
        """Logits `[B, T, V]` of ids `[B, T]`.

        `head_gate` `[L, H]` or `[L, B, H]` scales each head's z. `offset` is the position of the
        first token. `cache`, from `empty_cache`, holds the keys and values of the tokens before
        `ids`. Those of `ids` are appended, and the cache's length replaces `offset`. Raises
        ShapeError for anything that does not fit.
        """
        steps = self.residuals(ids, head_gate=head_gate, offset=offset, cache=cache)
        (resid,) = deque(steps, maxlen=1)
        return self.unembed(resid)

    @torch.inference_mode()
    def attention_input(self, ids: Tensor, layer: int) -> Tensor:
        """What the attention of `layer` reads for ids `[B, T]`: the normalised stream `[B, T, C]`.

        Raises ShapeError for a layer that this model does not have.
        """
        L = self.config.n_layers
        if not 0 <= layer < L:
            raise ShapeError(f"layer = {layer}; this model has layers 0 to {L - 1}.")
        resid = next(islice(self.residuals(ids), layer, None))
        return self.blocks[layer].attention_input(resid)

    @torch.inference_mode()
    def run(
        self, ids: Tensor, *, head_gate: Tensor | None = None, on_layer: OnLayer | None = None
    ) -> Run:
        """q, k and v of every layer, and the logits at the last position, for ids `[B, T]`.

        Query heads that share a key/value head each get a copy of it; pruned heads are NaN. In the
        last block, z and everything after it is computed for the last position alone. `head_gate`
        and the errors are those of `forward`.
        """
        resid = self.embed(ids)
        cfg = self.config
        shape = (3, cfg.n_layers, ids.shape[0], cfg.n_heads, ids.shape[1], cfg.d_head)
        qkv = torch.empty(shape, dtype=resid.dtype, device=resid.device)
        for layer, block in enumerate(self.blocks):
            resid_pre = resid[:, -1:] if layer == cfg.n_layers - 1 else resid
            # Nested, so that nothing holds what attention adds while the MLP runs.
            resid = block.after_attention(
                resid_pre, self._record(qkv[:, layer], layer, resid, head_gate)
            )
            if on_layer is not None:
                on_layer(layer + 1)
        return Run(qkv=qkv, logits=self.unembed(resid[:, -1]))

    def empty_cache(self, size: int | None = None, *, batch: int = 1) -> list[KVCache]:
        """A cache for each layer with room for `size` tokens (default: n_positions)."""
        n, like = size or self.config.n_positions, self.W_U.weight
        return [
            KVCache(batch, block.attn.n_kv_heads, n, self.config.d_head, like)
            for block in self.blocks
        ]

    @torch.no_grad()
    def with_attention(
        self, config: NetworkConfig, states: Mapping[int, Mapping[str, Tensor]]
    ) -> Self:
        """A network with another configuration and other attention weights in some layers.

        `states` maps a layer to the state dict of its attention. All other weights are shared with
        this network, not copied.
        """
        with torch.device("meta"):
            new = type(self)(config)
        state = self.state_dict()
        for layer, attention in states.items():
            state |= {f"blocks.{layer}.attn.{name}": tensor for name, tensor in attention.items()}
        new.load_state_dict(state, assign=True)
        if self.W_U.weight is self.token_embedding.weight:
            new.W_U.weight = new.token_embedding.weight
        return new.requires_grad_(False).train(self.training)

    def check_ids(self, ids: Tensor, offset: int) -> None:
        """Raises ShapeError for ids that are not `[B, T]` or reach beyond n_positions."""
        if ids.dim() != 2 or ids.shape[1] < 1:
            raise ShapeError(f"ids have shape {list(ids.shape)}; expected [B, T] with T >= 1.")
        end = offset + ids.shape[1]
        if offset < 0 or end > self.config.n_positions:
            raise ShapeError(
                f"ids {list(ids.shape)} at offset {offset} reach position {end - 1}; the last is "
                f"{self.config.n_positions - 1}, since n_positions = {self.config.n_positions}."
            )

    def _record(self, out: Tensor, layer: int, resid: Tensor, head_gate: Tensor | None) -> Tensor:
        """Writes q, k and v of a layer to `out`; returns what its attention adds.

        In the last layer, it returns the last position alone. q, k, v and z are freed on return.
        """
        cfg, block, kept = self.config, self.blocks[layer], self.config.kept_heads(layer)
        q, k, v, z = block.heads(resid, last_only=layer == cfg.n_layers - 1)
        for target, part in zip(out, (q, k, v), strict=True):
            full = repeat_heads(part, len(kept))
            if len(kept) == cfg.n_heads:
                target.copy_(full)
            else:
                target.fill_(torch.nan)
                target[:, kept] = full
        return block.attn.merge(z, head_gate=self._gate_of(layer, head_gate))

    def _gate_of(self, layer: int, head_gate: Tensor | None) -> Tensor | None:
        """The gate of the heads that are left in a layer, `[H]` or `[B, H]`. Raises ShapeError."""
        if head_gate is None:
            return None
        cfg = self.config
        if head_gate.dim() not in (2, 3) or head_gate.shape[0] != cfg.n_layers:
            raise ShapeError(
                f"head_gate has shape {list(head_gate.shape)}; expected [L, H] = "
                f"{[cfg.n_layers, cfg.n_heads]} or [L, B, H]."
            )
        kept = cfg.kept_heads(layer)
        gate = head_gate[layer]
        return gate if len(kept) == cfg.n_heads else gate[..., kept]
