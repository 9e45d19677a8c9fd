"""The weights of a layer for code that knows only plain multi-head attention.

Such code has H heads of C / H channels, divides the scores by √d_h and adds biases. A layer with
another scale, with shared keys and values or with pruned heads computes the same with other
weights.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from mha_viz.attention import MultiHeadAttention
from mha_viz.errors import ShapeError


@dataclass(frozen=True, slots=True, eq=False)
class PlainLayer:
    """The weights of a plain layer, and in sentences what was changed to make it one."""

    W_QKV: Tensor = field(repr=False)  # [3C, C]
    b_QKV: Tensor = field(repr=False)  # [3C]
    W_O: Tensor = field(repr=False)  # [C, C]
    b_O: Tensor = field(repr=False)  # [C]
    n_heads: int
    changes: tuple[str, ...] = ()


@torch.inference_mode()
def plain_layer(attention: MultiHeadAttention) -> PlainLayer:
    """The plain layer that computes what `attention` does.

    A key/value head is repeated for each query head that shares it, q is multiplied by the ratio of
    the layer's scale to 1/√d_h, and pruned heads and missing biases are zeros.

    Raises ShapeError for heads that do not fit into C channels.
    """
    H, G, d_h, C = attention.n_heads, attention.n_kv_heads, attention.d_head, attention.d_model
    if C % d_h or H * d_h > C:
        raise ShapeError(f"{H} heads of {d_h} channels are not plain attention over C = {C}.")
    rows = torch.cat([attention.W_QKV.weight, _bias(attention.W_QKV)[:, None]], dim=1)
    q, k, v = torch.split(rows.view(H + 2 * G, d_h, C + 1), [H, G, G])
    factor = attention.scale * d_h**0.5
    parts = [q * factor, *(t.repeat_interleave(H // max(G, 1), dim=0) for t in (k, v))]
    missing = C // d_h - H
    padded = torch.cat([torch.cat([t, t.new_zeros(missing, d_h, C + 1)]) for t in parts])
    W_O = torch.cat([attention.W_O.weight, rows.new_zeros(C, missing * d_h)], dim=1)
    W_QKV, b_QKV = torch.split(padded.flatten(0, 1), [C, 1], dim=1)
    return PlainLayer(
        W_QKV.contiguous(), b_QKV.flatten(), W_O, _bias(attention.W_O), C // d_h,
        _changes(attention, missing),
    )  # fmt: skip


def _bias(linear: torch.nn.Linear) -> Tensor:
    return linear.weight.new_zeros(linear.out_features) if linear.bias is None else linear.bias


def _changes(attention: MultiHeadAttention, missing: int) -> tuple[str, ...]:
    """What sets the layer apart from plain attention, and how its weights make up for it."""
    H, G, d_h = attention.n_heads, attention.n_kv_heads, attention.d_head
    found = []
    if attention.scale != d_h**-0.5:
        found.append(
            f"This layer multiplies its scores by {attention.scale:.3g} and the code by "
            f"1/√d_h = {d_h**-0.5:.3g}; the weights of q make up for it."
        )
    if G != H:
        found.append(f"In this layer {H} heads share {G} keys and values; here they are repeated.")
    if missing:
        found.append(f"{missing} heads of this layer are pruned; here their weights are 0.")
    return tuple(found)
