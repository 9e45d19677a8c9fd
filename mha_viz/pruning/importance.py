"""How much a head matters, told without removing it: by its gradient, its values, its pattern.

Each is a score `[L, H]`, larger for heads that matter more; NaN marks a head that is not there.
All are estimates: `ablation.ablate_each_head` is what they estimate.
"""

from collections.abc import Callable, Iterable

import numpy as np
import torch
from torch import Tensor

from mha_viz.gpt2 import GPT2, Block, GPT2Config
from mha_viz.heads import patterns
from mha_viz.model import Model
from mha_viz.pruning.ablation import Scores
from mha_viz.pruning.inputs import Text, one_or_many, token_ids
from mha_viz.pruning.passes import (
    VOCABULARY_PART,
    ZERO,
    Pass,
    Replacement,
    as_gate,
    pattern_and_values,
    run_layer,
)
from mha_viz.pruning.replacements import Progress
from mha_viz.trace import Array


def gradient_importance(
    model: Model,
    text: Text | Iterable[Text],
    *,
    normalize: bool = False,
    gate: Tensor | Array | None = None,
    replacement: Replacement = ZERO,
    on_progress: Progress | None = None,
) -> Scores:
    """`[L, H]`: |dL / dg_h| at g = 1, in nats a token, where g_h is the gate of head h.

    L is the mean loss of a text. Of several texts the absolute value is taken first and the mean
    then, so that opposite signs do not cancel; `normalize` divides each layer by its l2 norm last
    (Michel et al. 2019, section 4.1). With `gate` `[L, H]`, at that gate: heads that it has
    removed are NaN. One pass there and one back, a text; nothing on the model changes.

    Raises TextError as `token_ids` does, and ShapeError for a gate or replacement of another size.
    """
    texts = one_or_many(text)
    total = np.zeros((model.config.n_layers, model.config.n_heads))
    for n, one in enumerate(texts, start=1):
        total += np.abs(_gradient(model, one, gate, replacement))
        if on_progress is not None:
            on_progress(n / len(texts))
    scores = total / len(texts)
    if normalize:
        norms = np.sqrt(np.nansum(scores**2, axis=1, keepdims=True))
        scores = scores / np.where(norms > 0, norms, 1.0)
    return scores


def value_importance(model: Model, text: Text) -> Scores:
    """`[L, H]`: the mean over queries i >= 1 of sum_j ||A_ij f(x_j)||, f(x) = (x W_V + b_V) W_O^h.

    A large weight on a small vector moves little, and counts little here (Kobayashi et al. 2020,
    section 3). Raises TextError as `token_ids` does.
    """

    def mean(block: Block, pattern: Tensor, v: Tensor) -> Tensor:
        H, _, d_h = v.shape
        f = v @ block.attn.W_O.weight.T.reshape(H, d_h, block.attn.d_model)
        norms: Tensor = f.float().norm(dim=-1, keepdim=True)
        return (pattern[:, 1:] @ norms).mean((1, 2))

    return _from_patterns(model, text, mean)


def confidence(model: Model, text: Text) -> Scores:
    """`[L, H]`: the mean over queries i >= 1 of the largest weight, max_j A_ij.

    Voita et al. 2019, section 4; they leave the end of the sentence out, and here queries and keys
    that are special tokens are, and the first query, which can only look at itself. NaN too where
    nothing is left. Raises TextError as `token_ids` does.
    """
    ids = token_ids(model, text)[0].tolist()
    words = torch.from_numpy(patterns.ordinary(model.read(ids)))
    queries = words[words > 0]

    def mean(block: Block, pattern: Tensor, v: Tensor) -> Tensor:
        if not len(queries):
            return pattern.new_full((len(pattern),), torch.nan)
        return pattern[:, queries][:, :, words].amax(-1).mean(-1)

    return _from_patterns(model, ids, mean)


def random_importance(config: GPT2Config, seed: int = 0) -> Scores:
    """`[L, H]`: numbers without meaning, in [0, 1): what every other order has to beat."""
    scores = np.random.default_rng(seed).random((config.n_layers, config.n_heads))
    return _only_there(config, scores)


def _gradient(
    model: Model, text: Text, gate: Tensor | Array | None, replacement: Replacement
) -> Scores:
    network = model.network
    # A tensor made under inference mode could not be kept for the way back.
    with torch.inference_mode(False), torch.enable_grad():
        ids = token_ids(model, text)
        at = as_gate(network, gate).requires_grad_()
        resid = network.wte(ids) + network.wpe.weight[: ids.shape[1]]
        for layer in range(network.config.n_layers):
            resid = run_layer(network, layer, resid, at, replacement)
        x = network.ln_f(resid[0, :-1])
        (found,) = torch.autograd.grad(x, at, _loss_gradient(network, x.detach(), ids[0, 1:]))
    found = found.masked_fill(at.detach() == 0, torch.nan)
    return _only_there(network.config, found.cpu().double().numpy())


@torch.no_grad()
def _loss_gradient(network: GPT2, x: Tensor, targets: Tensor) -> Tensor:
    """d(mean loss) / dx = (p - one hot) W_U / n for x `[n, C]`, part by part of the vocabulary."""
    W_U = network.W_U.weight
    parts = torch.split(W_U, VOCABULARY_PART)
    logits = [(x @ rows.T).float() for rows in parts]
    total = torch.stack([part.logsumexp(-1) for part in logits]).logsumexp(0)
    gradient = -W_U[targets]
    for part, rows in zip(logits, parts, strict=True):
        gradient += part.sub_(total[:, None]).exp_().to(x.dtype) @ rows
    return gradient / len(x)


@torch.inference_mode()
def _from_patterns(
    model: Model, text: Text, score: Callable[[Block, Tensor, Tensor], Tensor]
) -> Scores:
    whole, cfg = Pass.of(model, text), model.config
    found = np.full((cfg.n_layers, cfg.n_heads), np.nan)
    for layer, block in enumerate(model.network.blocks):
        scores = score(block, *pattern_and_values(block, whole.resid[layer]))
        found[layer, cfg.kept_heads(layer)] = scores.cpu().double().numpy()
    return found


def _only_there(config: GPT2Config, scores: Scores) -> Scores:
    """The scores, with NaN for heads that were taken out of the model."""
    there = np.full_like(scores, np.nan)
    for layer in range(config.n_layers):
        kept = config.kept_heads(layer)
        there[layer, kept] = scores[layer, kept]
    return there
