"""Ablates every head alone, exactly, and measures how much the loss rises, in nats per token.

The layers below a head run once for all heads, and the heads of a layer run as one batch through
the layers above it. The result is that of one full forward pass per head.
"""

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mha_viz.callbacks import OnProgress
from mha_viz.errors import ShapeError
from mha_viz.model import Model
from mha_viz.pruning.inputs import Text, token_ids
from mha_viz.pruning.passes import (
    ZERO,
    Pass,
    Replacement,
    attention_output,
    run_layer,
    token_losses,
)
from mha_viz.pruning.replacements import BATCH, Method, replacement_for
from mha_viz.trace import Array

Scores = NDArray[np.float64]  # [L, H]; NaN for heads without a score


def ablate_each_head(
    model: Model,
    text: Text,
    *,
    method: Method | Replacement = "zero",
    gate: Tensor | Array | None = None,
    first: int = 1,
    on_progress: OnProgress | None = None,
) -> Scores:
    """`[L, H]`: the loss with the head ablated minus the loss with it intact, in nats per token.

    Exact, for each head alone or in addition to those that `gate` `[L, H]` already ablates. Those
    are NaN, and so are pruned heads. `method` names an ablation, or is a `Replacement`. The loss
    is the mean over the tokens from position `first` on. `on_progress` is called with the fraction
    done; an exception that it raises stops the work.

    Raises TextError for a text of fewer than two tokens or more than n_positions, and ShapeError
    for anything else that does not fit.
    """
    T = token_ids(model, text).shape[1]
    if not 1 <= first < T:
        raise ShapeError(f"first = {first}; losses exist at positions 1 to {T - 1}.")
    base = Pass.of(model, text, gate=gate, replacement=replacement_for(model, method, T))
    return ablation_effects(base, first=first, on_progress=on_progress)


def ablate_each_head_by_token(
    model: Model,
    text: Text,
    *,
    method: Method | Replacement = "zero",
    on_progress: OnProgress | None = None,
) -> Scores:
    """`[L, H, T - 1]`: as `ablate_each_head`, for the loss of each token from position 1 on.

    The mean over the last axis is what `ablate_each_head` returns. Raises as it does.
    """
    T = token_ids(model, text).shape[1]
    base = Pass.of(model, text, replacement=replacement_for(model, method, T))
    return _effects_by_token(base, 1, on_progress)


def ablation_effects(
    base: Pass, *, first: int = 1, on_progress: OnProgress | None = None
) -> Scores:
    """`[L, H]` as in `ablate_each_head`, in addition to the heads that this pass ablates."""
    mean: Scores = _effects_by_token(base, first, on_progress).mean(-1)
    return mean


@torch.inference_mode()
def _effects_by_token(base: Pass, first: int, on_progress: OnProgress | None) -> Scores:
    cfg = base.network.config
    before = token_losses(base.network, base.resid[-1], base.ids, first)[0].cpu().double()
    effects = np.full((cfg.n_layers, cfg.n_heads, len(before)), np.nan)
    for layer in range(cfg.n_layers):
        for heads, losses in _layer_losses(base, layer, first):
            effects[layer, heads] = (losses - before).numpy()
        if on_progress is not None:
            on_progress((layer + 1) / cfg.n_layers)
    return effects


def losses(
    model: Model,
    text: Text,
    *,
    gate: Tensor | Array | None = None,
    replacement: Replacement = ZERO,
) -> Array:
    """`[T - 1]`: -ln p of each token from position 1 on, in nats, under a gate `[L, H]`.

    Raises as `Pass.of` does.
    """
    return Pass.of(model, text, gate=gate, replacement=replacement).losses()


def _layer_losses(base: Pass, layer: int, first: int) -> Iterator[tuple[list[int], Tensor]]:
    """(heads, the losses `[B, T - first]` with each ablated too), a batch of heads at a time."""
    network, gate = base.network, base.gate
    block, resid, kept = network.blocks[layer], base.resid[layer], network.config.kept_heads(layer)
    T = resid.shape[1]
    heads = [head for head in kept if gate[layer, head] != 0]
    z, replacement = block.heads(resid).z, base.replacement.of(layer, kept, T)
    for start in range(0, len(heads), max(1, BATCH // T)):
        batch = heads[start : start + max(1, BATCH // T)]
        B = len(batch)
        gates = gate[layer].repeat(B, 1)
        gates[range(B), batch] = 0.0
        out = attention_output(block.attn, z.expand(B, -1, -1, -1), gates[:, kept], replacement)
        x = block.after_attention(resid, out)
        for above in range(layer + 1, network.config.n_layers):
            x = run_layer(network, above, x, gate, base.replacement)
        yield batch, token_losses(network, x, base.ids, first).cpu().double()
