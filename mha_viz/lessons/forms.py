"""One attention layer in seven forms. A page shows this code and runs it on the user's text.

Each form reads whole: it uses no helper from another. They have biases, as in GPT-2, and divide the
scores by √d_h. `implementations` gives them the weights of a layer, and says what each one is.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

# fmt: off

class MultiHeadAttention(nn.Module):
    def __init__(self, C: int, H: int, dropout: float = 0.0) -> None:
        super().__init__()
        assert C % H == 0, "C must divide into H heads"
        self.H, self.d_h = H, C // H
        self.W_QKV = nn.Linear(C, 3 * C)
        self.W_O = nn.Linear(C, C)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.shape
        q, k, v = self.W_QKV(x).split(C, dim=-1)
        q, k, v = (t.view(B, T, self.H, self.d_h).transpose(1, 2)
                   for t in (q, k, v))
        s = q @ k.transpose(-2, -1) / self.d_h**0.5
        later = torch.ones(T, T, device=x.device).triu(1).bool()
        s = s.masked_fill(later, -torch.inf)
        w = self.dropout(s.softmax(dim=-1))
        z = w @ v
        z = z.transpose(1, 2).reshape(B, T, C)
        return self.W_O(z)


def add_to_stream(resid: Tensor, out: Tensor) -> Tensor:
    return resid + out


class SeparateProjections(nn.Module):
    def __init__(self, C: int, H: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.H, self.d_h = H, C // H
        self.W_Q = nn.Linear(C, C)
        self.W_K = nn.Linear(C, C)
        self.W_V = nn.Linear(C, C)
        self.W_O = nn.Linear(C, C)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        B, T, C = x.shape
        q, k, v = self.W_Q(x), self.W_K(x), self.W_V(x)
        q = q.view(B, T, self.H, self.d_h).transpose(1, 2)
        k = k.view(B, T, self.H, self.d_h).transpose(1, 2)
        v = v.view(B, T, self.H, self.d_h).transpose(1, 2)
        s = q @ k.transpose(-2, -1) / self.d_h**0.5
        s = s.masked_fill(~mask, torch.finfo(s.dtype).min)
        w = self.dropout(s.softmax(dim=-1))
        z = w @ v
        z = z.transpose(1, 2).reshape(B, T, C)
        return self.W_O(z)


class Head(nn.Module):
    def __init__(self, C: int, d_h: int) -> None:
        super().__init__()
        self.W_Q = nn.Linear(C, d_h)
        self.W_K = nn.Linear(C, d_h)
        self.W_V = nn.Linear(C, d_h)

    def forward(self, x: Tensor) -> Tensor:
        T = x.shape[1]
        q, k, v = self.W_Q(x), self.W_K(x), self.W_V(x)
        s = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        later = torch.ones(T, T, device=x.device).triu(1).bool()
        s = s.masked_fill(later, -torch.inf)
        w = s.softmax(dim=-1)
        return w @ v


class HeadByHead(nn.Module):
    def __init__(self, C: int, H: int) -> None:
        super().__init__()
        self.heads = nn.ModuleList(Head(C, C // H) for _ in range(H))
        self.W_O = nn.Linear(C, C)

    def forward(self, x: Tensor) -> Tensor:
        z = torch.cat([head(x) for head in self.heads], dim=-1)
        return self.W_O(z)


def split_heads(t: Tensor, H: int) -> Tensor:
    B, T, C = t.shape
    return t.view(B, T, H, C // H).transpose(1, 2)


def merge_heads(z: Tensor) -> Tensor:
    B, H, T, d_h = z.shape
    return z.transpose(1, 2).reshape(B, T, H * d_h)


def multi_head_attention(
    q: Tensor, k: Tensor, v: Tensor, H: int, mask: Tensor
) -> Tensor:
    q, k, v = split_heads(q, H), split_heads(k, H), split_heads(v, H)
    s = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    allowed = mask.unsqueeze(1)
    s = s.masked_fill(~allowed, torch.finfo(s.dtype).min)
    w = s.softmax(dim=-1)
    z = w @ v
    return merge_heads(z)


Floats = NDArray[np.float32]


def numpy_attention(
    x: Floats, W_QKV: Floats, b_QKV: Floats, W_O: Floats, b_O: Floats, H: int
) -> Floats:
    B, T, C = x.shape
    W = W_QKV.reshape(3, H, C // H, C)
    b = b_QKV.reshape(3, 1, H, 1, C // H)
    q, k, v = np.einsum("btc,nhic->nbhti", x, W) + b
    s = np.einsum("bhti,bhsi->bhts", q, k) / (C // H) ** 0.5
    s = np.where(np.tri(T, dtype=bool), s, -np.inf)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    w = e / e.sum(axis=-1, keepdims=True)
    z = np.einsum("bhts,bhsi->bthi", w, v)
    out: Floats = z.reshape(B, T, C) @ W_O.T + b_O
    return out


def tiled_attention(q: Tensor, k: Tensor, v: Tensor, block: int = 16) -> Tensor:
    T, d_h = q.shape[-2:]
    z = torch.empty_like(q)
    for i in range(0, T, block):
        q_i = q[..., i : i + block, :]
        m = torch.full_like(q_i[..., :1], -torch.inf)
        total, sum_i = torch.zeros_like(m), torch.zeros_like(q_i)
        for j in range(0, i + 1, block):
            s = q_i @ k[..., j : j + block, :].mT / d_h**0.5
            later = torch.ones_like(s).triu(i - j + 1).bool()
            s = s.masked_fill(later, -torch.inf)
            m, before = torch.maximum(m, s.amax(dim=-1, keepdim=True)), m
            e, shrink = torch.exp(s - m), torch.exp(before - m)
            total = shrink * total + e.sum(dim=-1, keepdim=True)
            sum_i = shrink * sum_i + e @ v[..., j : j + block, :]
        z[..., i : i + block, :] = sum_i / total
    return z


class WithFusedKernel(nn.Module):
    def __init__(self, C: int, H: int) -> None:
        super().__init__()
        self.H, self.d_h = H, C // H
        self.W_QKV = nn.Linear(C, 3 * C)
        self.W_O = nn.Linear(C, C)

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.shape
        q, k, v = self.W_QKV(x).split(C, dim=-1)
        q, k, v = (t.view(B, T, self.H, self.d_h).transpose(1, 2)
                   for t in (q, k, v))
        z = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        z = z.transpose(1, 2).reshape(B, T, C)
        return self.W_O(z)


def torch_module(x: Tensor, weights: dict[str, Tensor], H: int) -> Tensor:
    T, C = x.shape[1:]
    theirs = nn.MultiheadAttention(C, H, batch_first=True).to(x)
    theirs.load_state_dict(weights)
    later = torch.ones(T, T, device=x.device).triu(1).bool()
    out, _ = theirs.eval()(x, x, x, attn_mask=later, need_weights=False)
    return out
