"""Estimates of head importance without ablating heads: from gradients, values or patterns.

Each is a score `[L, H]`, larger for more important heads; NaN for pruned heads. They estimate what
`ablation.ablate_each_head` measures.
"""

from collections.abc import Callable, Iterable

import numpy as np
import torch
from torch import Tensor

from mha_viz.callbacks import OnProgress
from mha_viz.heads import patterns
from mha_viz.model import Model
from mha_viz.network import Block, Network, NetworkConfig
from mha_viz.pruning.ablation import Scores
from mha_viz.pruning.inputs import Text, n_losses, one_or_many, token_ids
from mha_viz.pruning.passes import (
    ZERO,
    Pass,
    Replacement,
    as_gate,
    pattern_and_values,
    run_layer,
    vocabulary_parts,
)
from mha_viz.trace import Array


def gradient_importance(
    model: Model,
    text: Text | Iterable[Text],
    *,
    normalize: bool = False,
    gate: Tensor | Array | None = None,
    replacement: Replacement = ZERO,
    on_progress: OnProgress | None = None,
) -> Scores:
    """`[L, H]`: |dL / dg_h| at g = 1, in nats per token, where g_h is the gate of head h.

    L is the mean loss of a text. Over several texts it is the mean of the absolute values, so that
    opposite signs do not cancel, and every token counts the same; `normalize` divides each layer by
    its l2 norm at the end (Michel et al. 2019, section 4.1). With `gate` `[L, H]` the gradient is
    taken at that gate, and heads that it ablates are NaN. Each text takes one forward and one
    backward pass; the model does not change. `on_progress` is called with the fraction done.

    Raises TextError as `token_ids` does, ShapeError for a gate or replacement of the wrong shape.
    """
    texts = one_or_many(text)
    weights = n_losses(model, texts)
    total = np.zeros((model.config.n_layers, model.config.n_heads))
    for n, (one, weight) in enumerate(zip(texts, weights, strict=True), start=1):
        total += np.abs(_gradient(model, one, gate, replacement)) * weight
        if on_progress is not None:
            on_progress(n / len(texts))
    scores = total / sum(weights)
    if normalize:
        norms = np.sqrt(np.nansum(scores**2, axis=1, keepdims=True))
        scores = scores / np.where(norms > 0, norms, 1.0)
    return scores


def value_importance(model: Model, text: Text) -> Scores:
    """`[L, H]`: the mean over queries i >= 1 of sum_j ||A_ij f(x_j)||, f(x) = (x W_V + b_V) W_O^h.

    The norms of the transformed value vectors, weighted by attention: a large weight on a short
    vector counts little (Kobayashi et al. 2020, section 3). Queries that are special tokens do not
    count; NaN where no query is left. Raises TextError as `token_ids` does.
    """
    ids = token_ids(model, text)[0].tolist()
    text_positions = torch.from_numpy(patterns.text_positions(model.read(ids)))
    queries = text_positions[text_positions > 0]

    def mean(block: Block, pattern: Tensor, v: Tensor) -> Tensor:
        norms: Tensor = (v @ block.attn.W_O_by_head).float().norm(dim=-1, keepdim=True)
        return (pattern[:, queries] @ norms).mean((1, 2))

    return _from_patterns(model, ids, mean)


def confidence(model: Model, text: Text) -> Scores:
    """`[L, H]`: the mean over queries i >= 1 of the largest weight, max_j A_ij.

    Voita et al. 2019, section 4, who exclude the end-of-sentence token. Here, special tokens are
    excluded as queries and as keys, and so is the first query, which can only look at itself. NaN
    where no query is left. Raises TextError as `token_ids` does.
    """
    ids = token_ids(model, text)[0].tolist()
    keys = torch.from_numpy(patterns.text_positions(model.read(ids)))
    queries = keys[keys > 0]

    def mean(block: Block, pattern: Tensor, v: Tensor) -> Tensor:
        if not len(queries):
            return pattern.new_full((len(pattern),), torch.nan)
        return pattern[:, queries][:, :, keys].amax(-1).mean(-1)

    return _from_patterns(model, ids, mean)


def random_importance(config: NetworkConfig, seed: int = 0) -> Scores:
    """`[L, H]`: random numbers in [0, 1), a baseline for every other measure."""
    scores = np.random.default_rng(seed).random((config.n_layers, config.n_heads))
    return _nan_where_pruned(config, scores)


def _gradient(
    model: Model, text: Text, gate: Tensor | Array | None, replacement: Replacement
) -> Scores:
    network = model.network
    # Autograd cannot save tensors that were made in inference mode.
    with torch.inference_mode(False), torch.enable_grad():
        ids = token_ids(model, text)
        at = as_gate(network, gate).requires_grad_()
        resid = network.embed(ids)
        for layer in range(network.config.n_layers):
            resid = run_layer(network, layer, resid, at, replacement)
        x = network.final_norm(resid[0, :-1])
        (gradient,) = torch.autograd.grad(x, at, _loss_gradient(network, x.detach(), ids[0, 1:]))
    gradient = gradient.masked_fill(at.detach() == 0, torch.nan)
    return _nan_where_pruned(network.config, gradient.cpu().double().numpy())


@torch.no_grad()
def _loss_gradient(network: Network, x: Tensor, targets: Tensor) -> Tensor:
    """d(mean loss) / dx = (p - one-hot) W_U / n for x `[n, C]`, one vocabulary part at a time."""
    parts = vocabulary_parts(network)
    logits = [(x @ rows.T).float() for rows in parts]
    total = torch.stack([part.logsumexp(-1) for part in logits]).logsumexp(0)
    gradient = -network.W_U.weight[targets].float()
    for part, rows in zip(logits, parts, strict=True):
        gradient += part.sub_(total[:, None]).exp_() @ rows.float()
    return (gradient / len(x)).to(x.dtype)


@torch.inference_mode()
def _from_patterns(
    model: Model, text: Text, score: Callable[[Block, Tensor, Tensor], Tensor]
) -> Scores:
    full, cfg = Pass.of(model, text), model.config
    scores = np.full((cfg.n_layers, cfg.n_heads), np.nan)
    for layer, block in enumerate(model.network.blocks):
        of_layer = score(block, *pattern_and_values(block, full.resid[layer]))
        scores[layer, cfg.kept_heads(layer)] = of_layer.cpu().double().numpy()
    return scores


def _nan_where_pruned(config: NetworkConfig, scores: Scores) -> Scores:
    masked = np.full_like(scores, np.nan)
    for layer in range(config.n_layers):
        kept = config.kept_heads(layer)
        masked[layer, kept] = scores[layer, kept]
    return masked
