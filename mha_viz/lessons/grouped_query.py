"""Converts a GPT-2 to grouped-query or multi-query attention, where heads share keys and values.

Each group of H / G query heads shares one key and one value head: the mean of those that the group
had before (Ainslie et al. 2023, section 2.1). The paper then continues training; here there is no
further training, so the loss shows the cost of the conversion alone.
"""

from dataclasses import replace
from typing import TypeVar

import torch
from torch import Tensor

from mha_viz.attention import MultiHeadAttention
from mha_viz.network import Network

N = TypeVar("N", bound=Network)


@torch.no_grad()
def grouped(attention: MultiHeadAttention, n_kv_heads: int) -> MultiHeadAttention:
    """A copy with G = `n_kv_heads` key/value heads, each the mean of a group of heads.

    Raises ShapeError if G does not divide the module's own number of key/value heads.
    """
    H, d_h = attention.n_heads, attention.d_head
    weight, bias = attention.W_QKV.weight, attention.W_QKV.bias
    new = MultiHeadAttention(
        attention.d_model,
        H,
        n_kv_heads=n_kv_heads,
        d_head=d_h,
        bias=bias is not None,
        causal=attention.causal,
        dropout=attention.dropout,
        scale=attention.scale,
    )
    new.to(weight).train(attention.training)

    def mean_pooled(rows: Tensor) -> Tensor:
        q, kv = rows[: H * d_h], rows[H * d_h :]
        groups = kv.view(2, n_kv_heads, attention.n_kv_heads // n_kv_heads, d_h, *kv.shape[1:])
        return torch.cat([q, groups.mean(dim=2).reshape(-1, *kv.shape[1:])])

    new.W_QKV.weight.copy_(mean_pooled(weight))
    new.W_O.load_state_dict(attention.W_O.state_dict())
    if bias is not None:
        new.W_QKV.bias.copy_(mean_pooled(bias))
    return new


def grouped_gpt2(network: N, n_kv_heads: int) -> N:
    """The network with G key/value heads in every layer; other weights are shared, not copied.

    Raises ShapeError if G does not divide H.
    """
    states = {
        layer: grouped(block.attn, n_kv_heads).state_dict()
        for layer, block in enumerate(network.blocks)
    }
    return network.with_attention(replace(network.config, n_kv_heads=n_kv_heads), states)
