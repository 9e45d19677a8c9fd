"""GPT-2 built from `attention.MultiHeadAttention`: embeddings, blocks, tied unembedding.

    resid = wte[ids] + wpe[positions]
    resid = resid + attn(ln_1(resid));  resid = resid + mlp(ln_2(resid))     for each block
    logits = ln_f(resid) @ W_U^T                                             Radford et al. 2019

A forward changes nothing: what a caller wants to know is a return value (`Run`), what a caller
wants to change is an argument (`head_gate`). Any number of threads may use one model at once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mha_viz.attention import MultiHeadAttention
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

    @property
    def d_head(self) -> int:
        """The width of one head."""
        return self.d_model // self.n_heads

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
        self.attn = MultiHeadAttention(config.d_model, config.n_heads, scale=config.scale(layer))
        self.ln_2 = nn.LayerNorm(config.d_model, eps=config.layer_norm_epsilon)
        self.mlp = MLP(config)

    def forward(self, resid: Tensor, *, head_gate: Tensor | None = None) -> Tensor:
        """The residual stream `[B, T, C]` after this block; `head_gate` `[H]` or `[B, H]`."""
        resid = resid + self.attn(self.ln_1(resid), head_gate=head_gate)
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

    def forward(self, ids: Tensor, *, head_gate: Tensor | None = None, offset: int = 0) -> Tensor:
        """Logits `[B, T, V]` of ids `[B, T]`.

        `head_gate` `[L, H]` or `[L, B, H]` scales each head's z. `offset` is the position of the
        first token. Raises ShapeError for ids or a gate that do not fit.
        """
        resid = self._embed(ids, offset)
        for layer, block in enumerate(self.blocks):
            resid = block(resid, head_gate=self._gate(head_gate, layer))
        logits: Tensor = self.W_U(self.ln_f(resid))
        return logits

    @torch.inference_mode()
    def run(self, ids: Tensor, *, head_gate: Tensor | None = None) -> Run:
        """q, k and v of every layer and the logits at the last position, of ids `[B, T]`.

        Nothing but the last position of the last block is read after its keys and values, so
        nothing else of that block is computed.
        """
        resid = self._embed(ids, 0)
        cfg = self.config
        shape = (3, cfg.n_layers, ids.shape[0], cfg.n_heads, ids.shape[1], cfg.d_head)
        qkv = torch.empty(shape, dtype=resid.dtype, device=resid.device)
        for layer, block in enumerate(self.blocks):
            gate = self._gate(head_gate, layer)
            q, k, v = block.attn.project(block.ln_1(resid))
            for kept, part in zip(qkv[:, layer], (q, k, v), strict=True):
                kept.copy_(part)
            del part
            if layer == cfg.n_layers - 1:
                resid = resid[:, -1:]
                z = F.scaled_dot_product_attention(q[:, :, -1:], k, v, scale=block.attn.scale)
            else:
                z = block.attn.attend(q, k, v)
            del q, k, v
            resid = resid + block.attn.merge(z, head_gate=gate)
            resid = resid + block.mlp(block.ln_2(resid))
        return Run(qkv=qkv, logits=self.W_U(self.ln_f(resid[:, -1])))

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
        return head_gate[layer]
