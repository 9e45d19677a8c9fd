"""Mistakes in our attention that every shape survives, for the tests that must notice them."""

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from mha_viz import attention, trace
from mha_viz.attention import MultiHeadAttention
from mha_viz.gpt2 import GPT2Config


def wrong_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GPT2Config, "scale", lambda self, layer: self.d_head**-0.5 * 1.01)


def no_mask_in_patterns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace, "_above_diagonal", lambda n: np.zeros((n, n), dtype=bool))


def no_mask_in_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    fused = F.scaled_dot_product_attention

    def blind(*given: Any, is_causal: bool = False, **options: Any) -> torch.Tensor:
        return fused(*given, **options)

    monkeypatch.setattr(attention.F, "scaled_dot_product_attention", blind)


def wrong_split(monkeypatch: pytest.MonkeyPatch) -> None:
    right = MultiHeadAttention.project
    monkeypatch.setattr(
        MultiHeadAttention,
        "project",
        lambda self, x, kv=None: [right(self, x, kv)[i] for i in (1, 0, 2)],
    )
