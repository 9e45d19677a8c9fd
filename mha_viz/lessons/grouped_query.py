"""What becomes of a GPT-2 whose heads share keys and values: grouped- and multi-query attention.

A group of H / G heads keeps one key and one value head, the mean of theirs (Ainslie et al. 2023,
section 2.1). They go on to train the model for a while; here nothing is trained afterwards, so the
loss shows what the conversion alone costs.
"""

from dataclasses import replace

import torch
from torch import Tensor

from mha_viz.attention import MultiHeadAttention
from mha_viz.gpt2 import GPT2


@torch.no_grad()
def grouped(attention: MultiHeadAttention, n_kv_heads: int) -> MultiHeadAttention:
    """A copy with G = `n_kv_heads` key/value heads, each the mean of a group's.

    Raises ShapeError where G does not divide the module's own number of key/value heads.
    """
    old = attention
    H, d_h = old.n_heads, old.d_head
    new = MultiHeadAttention(
        old.d_model, H, n_kv_heads=n_kv_heads, d_head=d_h, bias=old.W_QKV.bias is not None,
        causal=old.causal, dropout=old.dropout, scale=old.scale,
    ).to(old.W_QKV.weight)  # fmt: skip
    new.train(old.training)

    def pooled(rows: Tensor) -> Tensor:
        q, kv = rows[: H * d_h], rows[H * d_h :]
        groups = kv.view(2, n_kv_heads, old.n_kv_heads // n_kv_heads, d_h, *kv.shape[1:])
        return torch.cat([q, groups.mean(dim=2).reshape(-1, *kv.shape[1:])])

    new.W_QKV.weight.copy_(pooled(old.W_QKV.weight))
    new.W_O.load_state_dict(old.W_O.state_dict())
    if old.W_QKV.bias is not None:
        new.W_QKV.bias.copy_(pooled(old.W_QKV.bias))
    return new


def grouped_gpt2(network: GPT2, n_kv_heads: int) -> GPT2:
    """The GPT-2 with G key/value heads in every layer; all other weights are shared, not copied.

    Raises ShapeError where G does not divide H.
    """
    with torch.device("meta"):
        new = GPT2(replace(network.config, n_kv_heads=n_kv_heads)).eval()
    state = network.state_dict()
    for layer, block in enumerate(network.blocks):
        pooled = grouped(block.attn, n_kv_heads).state_dict()
        state |= {f"blocks.{layer}.attn.{name}": weight for name, weight in pooled.items()}
    new.load_state_dict(state, assign=True)
    return new.requires_grad_(False)
