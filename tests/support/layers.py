"""Attention layers of ours and of torch with the same random weights."""

from typing import Any

import torch
from torch import Tensor, nn

from mha_viz.attention import MultiHeadAttention

B, T, C, H = 2, 5, 12, 3


def attention(seed: int = 0, d_model: int = C, n_heads: int = H, **options: Any) -> Any:
    """A module in float64 whose weights are seeded and whose biases are not zero."""
    torch.manual_seed(seed)
    module = MultiHeadAttention(d_model, n_heads, **options).double()
    for name, parameter in module.named_parameters():
        if name.endswith("bias"):
            nn.init.normal_(parameter)
    return module.eval()


def random(*shape: int, seed: int = 1) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def close(found: Tensor, expected: Tensor, tolerance: float) -> None:
    torch.testing.assert_close(found, expected, atol=tolerance, rtol=0)


def torch_attention(module: Any) -> nn.MultiheadAttention:
    """torch's own module with the same weights."""
    theirs = nn.MultiheadAttention(C, H, batch_first=True).double().eval()
    weights = {
        "in_proj_weight": module.W_QKV.weight,
        "in_proj_bias": module.W_QKV.bias,
        "out_proj.weight": module.W_O.weight,
        "out_proj.bias": module.W_O.bias,
    }
    theirs.load_state_dict(weights)
    return theirs
