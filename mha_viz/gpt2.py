"""GPT-2 built from `attention.MultiHeadAttention`: embeddings, blocks, tied unembedding.

    resid = wte[ids] + wpe[positions]
    resid = resid + attn(ln_1(resid));  resid = resid + mlp(ln_2(resid))     for each block
    logits = ln_f(resid) @ W_U^T                                             Radford et al. 2019

`network.Network` runs these steps; nothing outside this file depends on their contents.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mha_viz.attention import MultiHeadAttention, head_width
from mha_viz.errors import CheckpointError
from mha_viz.layers import Embedding, FrozenNorm, check_width
from mha_viz.network import Block, Network, NetworkConfig

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
class GPT2Config(NetworkConfig):
    """The configuration of a GPT-2; the defaults are those of GPT-2 small."""

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

    def scale(self, layer: int) -> float:
        """The factor that multiplies q @ k^T in this layer."""
        scale = self.d_head**-0.5 if self.scale_attn_weights else 1.0
        return scale / (layer + 1) if self.scale_attn_by_inverse_layer_idx else scale


class MLP(nn.Module):
    """Two linear maps with an activation between them, applied to each position separately."""

    def __init__(self, config: GPT2Config) -> None:
        super().__init__()
        self.W_in = nn.Linear(config.d_model, config.d_mlp)
        self.W_out = nn.Linear(config.d_mlp, config.d_model)
        self.activation = ACTIVATIONS[config.activation]

    def forward(self, x: Tensor) -> Tensor:
        """What the MLP adds to the residual stream, `[B, T, C]`; `x` is the normalised stream."""
        out: Tensor = self.W_out(self.activation(self.W_in(x)))
        return out


class GPT2Block(Block):
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

    def attention_input(self, resid: Tensor) -> Tensor:
        """ln_1 of the residual stream, `[B, T, C]`. Raises ShapeError for another width."""
        check_width(resid, self.attn.d_model)
        out: Tensor = self.ln_1(resid)
        return out

    def mlp_output(self, resid_pre: Tensor, resid_mid: Tensor) -> Tensor:
        """mlp(ln_2(resid_mid)), `[B, T, C]`. Raises ShapeError for another width."""
        check_width(resid_mid, self.attn.d_model)
        out: Tensor = self.mlp(self.ln_2(resid_mid))
        return out


class GPT2(Network):
    """GPT-2. A new instance has random weights; `checkpoints.load` loads trained ones.

    Raises CheckpointError for an unknown activation, ShapeError if the heads do not fit d_model.
    """

    config: GPT2Config

    def __init__(self, config: GPT2Config) -> None:
        super().__init__()
        if config.activation not in ACTIVATIONS:
            raise CheckpointError(
                f"The activation function `{config.activation}` is not supported; "
                f"supported are {', '.join(ACTIVATIONS)}."
            )
        self.config = config
        self.wte = Embedding(config.vocab_size, config.d_model)
        self.wpe = Embedding(config.n_positions, config.d_model)
        blocks = nn.ModuleList(GPT2Block(config, layer) for layer in range(config.n_layers))
        self.blocks = cast("Sequence[Block]", blocks)
        self.ln_f = nn.LayerNorm(config.d_model, eps=config.layer_norm_epsilon)
        self.W_U = nn.Linear(config.d_model, config.vocab_size, bias=False)
        self.W_U.weight = self.wte.weight

    @property
    def token_embedding(self) -> Embedding:
        """The table that W_U is tied to, unless the checkpoint has a separate one."""
        return self.wte

    def embed(self, ids: Tensor, offset: int = 0) -> Tensor:
        """wte[ids] + wpe[positions], `[B, T, C]`. Raises ShapeError: see `check_ids`."""
        self.check_ids(ids, offset)
        resid: Tensor = self.wte(ids) + self.wpe.weight[offset : offset + ids.shape[1]]
        return resid

    def final_norm(self, resid: Tensor) -> Tensor:
        """ln_f of the residual stream, `[..., C]`. Raises ShapeError for another width."""
        check_width(resid, self.config.d_model)
        out: Tensor = self.ln_f(resid)
        return out

    def frozen_final_norm(self, resid: Tensor) -> FrozenNorm:
        """ln_f in float32 with its sigma frozen at that of `resid` `[C]`; an affine map."""
        check_width(resid, self.config.d_model)
        sigma = (resid.float().var(unbiased=False) + self.ln_f.eps).sqrt()
        return FrozenNorm(self.ln_f.weight.float() / sigma, self.ln_f.bias.float(), centred=True)
