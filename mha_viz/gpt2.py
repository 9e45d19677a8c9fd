"""GPT-2 built from `attention.MultiHeadAttention`: embeddings, blocks, tied unembedding.

    resid = wte[ids] + wpe[positions]
    resid = resid + attn(ln_1(resid));  resid = resid + mlp(ln_2(resid))     for each block
    logits = ln_f(resid) @ W_U^T                                             Radford et al. 2019

A forward changes nothing: what a caller wants to know is a return value (`Run`), what a caller
wants to change is an argument (`head_gate`, `cache`). Any number of threads may use one model.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mha_viz.attention import KVCache, MultiHeadAttention, head_width, repeat_heads
from mha_viz.errors import CheckpointError, ShapeError

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu_new": lambda x: F.gelu(x, approximate="tanh"),
    "gelu_pytorch_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "gelu": F.gelu,
    "relu": F.relu,
    "silu": F.silu,
    "swish": F.silu,
    "tanh": torch.tanh,
}


@dataclass(frozen=True, slots=True)
class GPT2Config:
    """The numbers that shape a GPT-2; the defaults are those of GPT-2 small."""

    n_layers: int = 12
    n_heads: int = 12
    d_model: int = 768
    d_mlp: int = 3072
    n_positions: int = 1024
    vocab_size: int = 50257
    activation: str = "gelu_new"
    layer_norm_epsilon: float = 1e-5
    scale_attn_weights: bool = True
    scale_attn_by_inverse_layer_idx: bool = False
    n_kv_heads: int | None = None  # G, where it is not n_heads
    pruned_heads: tuple[tuple[int, ...], ...] = ()  # for each layer, in rising order; () is none

    @property
    def d_head(self) -> int:
        """The width of one head."""
        return self.d_model // self.n_heads

    def kept_heads(self, layer: int) -> list[int]:
        """The heads of a layer that were not taken out, in rising order."""
        gone = self.pruned_heads[layer] if self.pruned_heads else ()
        return [head for head in range(self.n_heads) if head not in gone]

    def scale(self, layer: int) -> float:
        """What multiplies q @ k^T in this layer."""
        scale = self.d_head**-0.5 if self.scale_attn_weights else 1.0
        return scale / (layer + 1) if self.scale_attn_by_inverse_layer_idx else scale


@dataclass(frozen=True, slots=True)
class Run:
    """What one forward pass leaves behind, at O(T) a layer."""

    qkv: Tensor  # [3, L, B, H, T, d_h]
    logits: Tensor  # [B, V], at the last position


class MLP(nn.Module):
    """Two projections with a non-linearity between them, at each position by itself."""

    def __init__(self, config: GPT2Config) -> None:
        super().__init__()
        self.W_in = nn.Linear(config.d_model, config.d_mlp)
        self.W_out = nn.Linear(config.d_mlp, config.d_model)
        self.activation = ACTIVATIONS[config.activation]

    def forward(self, x: Tensor) -> Tensor:
        """What is added to the residual stream, `[B, T, C]`, for its normalised value."""
        out: Tensor = self.W_out(self.activation(self.W_in(x)))
        return out


class Block(nn.Module):
    """Attention, then the MLP; each reads a normalised residual stream and adds to it."""

    def __init__(self, config: GPT2Config, layer: int) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.d_model, eps=config.layer_norm_epsilon)
        self.attn = MultiHeadAttention(
            config.d_model,
            len(config.kept_heads(layer)),
            n_kv_heads=config.n_kv_heads,
            d_head=head_width(config.d_model, config.n_heads),
            scale=config.scale(layer),
        )
        self.ln_2 = nn.LayerNorm(config.d_model, eps=config.layer_norm_epsilon)
        self.mlp = MLP(config)

    def forward(
        self, resid: Tensor, *, head_gate: Tensor | None = None, cache: KVCache | None = None
    ) -> Tensor:
        """The residual stream `[B, T, C]` after this block; `head_gate` `[H]` or `[B, H]`."""
        resid = resid + self.attn(self.ln_1(resid), head_gate=head_gate, cache=cache)
        out: Tensor = resid + self.mlp(self.ln_2(resid))
        return out


class Embedding(nn.Embedding):
    """A table of vectors; on the meta device it draws none, for which torch would import sympy."""

    def reset_parameters(self) -> None:
        """Random numbers, where there is room for them."""
        if not self.weight.is_meta:
            super().reset_parameters()


class GPT2(nn.Module):
    """A decoder-only transformer. Without weights of its own it is random: see `checkpoints.load`.

    Raises CheckpointError for an activation that is not known, ShapeError where heads do not fit.
    """

    def __init__(self, config: GPT2Config) -> None:
        super().__init__()
        if config.activation not in ACTIVATIONS:
            raise CheckpointError(
                f"The activation function `{config.activation}` is not known here; "
                f"known are {', '.join(ACTIVATIONS)}."
            )
        self.config = config
        self.wte = Embedding(config.vocab_size, config.d_model)
        self.wpe = Embedding(config.n_positions, config.d_model)
        blocks = nn.ModuleList(Block(config, layer) for layer in range(config.n_layers))
        self.blocks = cast("Sequence[Block]", blocks)
        self.ln_f = nn.LayerNorm(config.d_model, eps=config.layer_norm_epsilon)
        self.W_U = nn.Linear(config.d_model, config.vocab_size, bias=False)
        self.W_U.weight = self.wte.weight

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
        first token. `cache`, from `empty_cache`, holds the tokens before `ids`; these are added to
        it, and the offset is its length. Raises ShapeError for what does not fit.
        """
        if cache is not None:
            offset = cache[0].length
        resid = self._embed(ids, offset)
        for layer, block in enumerate(self.blocks):
            gate = self._gate(head_gate, layer)
            past = None if cache is None else cache[layer]
            resid = block(resid, head_gate=gate, cache=past)
        logits: Tensor = self.W_U(self.ln_f(resid))
        return logits

    @torch.inference_mode()
    def attention_input(self, ids: Tensor, layer: int) -> Tensor:
        """What the attention of `layer` reads: the normalised residual stream `[B, T, C]`."""
        resid = self._embed(ids, 0)
        for block in self.blocks[:layer]:
            resid = block(resid)
        out: Tensor = self.blocks[layer].ln_1(resid)
        return out

    def empty_cache(self, size: int | None = None, *, batch: int = 1) -> list[KVCache]:
        """A cache for each layer with room for `size` tokens, n_positions unless given."""
        n, like = size or self.config.n_positions, self.wte.weight
        return [
            KVCache(batch, block.attn.n_kv_heads, n, self.config.d_head, like)
            for block in self.blocks
        ]

    @torch.inference_mode()
    def run(
        self,
        ids: Tensor,
        *,
        head_gate: Tensor | None = None,
        on_layer: Callable[[int], None] | None = None,
    ) -> Run:
        """q, k and v of every layer and the logits at the last position, of ids `[B, T]`.

        Query heads that share a key/value head have it each; heads that were taken out are NaN.
        Nothing but the last position of the last block is read after its keys and values, so
        nothing else of that block is computed. `on_layer` is told the number of layers that are
        done, and may raise to stop.
        """
        resid = self._embed(ids, 0)
        cfg = self.config
        shape = (3, cfg.n_layers, ids.shape[0], cfg.n_heads, ids.shape[1], cfg.d_head)
        qkv = torch.empty(shape, dtype=resid.dtype, device=resid.device)
        for layer, block in enumerate(self.blocks):
            gate = self._gate(head_gate, layer)
            q, k, v = block.attn.project(block.ln_1(resid))
            self._record(qkv[:, layer], layer, (q, k, v))
            if layer == cfg.n_layers - 1:
                resid = resid[:, -1:]
                z = block.attn.attend(q[:, :, -1:], k, v, past=ids.shape[1] - 1)
            else:
                z = block.attn.attend(q, k, v)
            del q, k, v
            resid = resid + block.attn.merge(z, head_gate=gate)
            resid = resid + block.mlp(block.ln_2(resid))
            if on_layer is not None:
                on_layer(layer + 1)
        return Run(qkv=qkv, logits=self.W_U(self.ln_f(resid[:, -1])))

    def _record(self, out: Tensor, layer: int, qkv: tuple[Tensor, Tensor, Tensor]) -> None:
        heads = self.config.kept_heads(layer)
        whole = len(heads) == self.config.n_heads
        for to, part in zip(out, qkv, strict=True):
            full = repeat_heads(part, len(heads))
            if whole:
                to.copy_(full)
            else:
                to.fill_(torch.nan)
                to[:, heads] = full

    def _embed(self, ids: Tensor, offset: int) -> Tensor:
        cfg = self.config
        if ids.dim() != 2 or ids.shape[1] < 1:
            raise ShapeError(f"ids have shape {list(ids.shape)}; expected [B, T] with T >= 1.")
        end = offset + ids.shape[1]
        if offset < 0 or end > cfg.n_positions:
            raise ShapeError(
                f"ids {list(ids.shape)} reach position {end}; "
                f"this model has n_positions = {cfg.n_positions}."
            )
        resid: Tensor = self.wte(ids) + self.wpe.weight[offset:end]
        return resid

    def _gate(self, head_gate: Tensor | None, layer: int) -> Tensor | None:
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
