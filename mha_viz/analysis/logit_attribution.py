"""What a head writes and its effect on the logits: value norms and direct logit attribution.

The residual stream is the sum of everything that was added to it, and the final norm is linear once
its scale is frozen. So each logit is a sum of the same terms (Elhage et al. 2021). For GPT-2:

    resid  = embedding + sum_l (sum_h z_lh W_O^lh + b_O^l + mlp_l)
    logits = (resid - mean(resid)) / sigma * gamma W_U + beta W_U

with the sigma of this run. A direct effect is one term of that sum: the path that bypasses all
later layers. Effects through later layers are not included; they may amplify or cancel it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mha_viz.callbacks import OnProgress
from mha_viz.errors import ShapeError
from mha_viz.head import Head
from mha_viz.model import Model
from mha_viz.network import Network
from mha_viz.trace import Array, Trace

# Two names, then one of them again; the answer is the other (Wang et al. 2023, section 2).
OPENINGS = (
    "After {a} and {b} had dinner at the inn, {s} handed a letter to",
    "When {a} and {b} met at the station, {s} gave the ticket to",
    "While {a} and {b} were painting the fence, {s} passed a brush to",
    "Then {a} and {b} sat down in the garden, and {s} offered an apple to",
)
NAMES = (("Mary", "John"), ("Alice", "Paul"), ("Sarah", "Tom"), ("Anna", "James"))


@dataclass(frozen=True, slots=True, eq=False)
class DirectEffects:
    """The terms of the logits of n tokens at one position; `total` adds them up.

    A constant added to all logits changes no probability, so compare tokens with each other, not
    with zero.
    """

    tokens: tuple[int, ...]
    embedding: Array  # [n], of the token and its position
    heads: Array  # [L, H, n]; NaN for pruned heads
    attention_bias: Array  # [L, n], of b_O, which belongs to no head
    mlps: Array  # [L, n]
    constant: Array  # [n], of the bias of the final norm

    @property
    def total(self) -> Array:
        """The logits `[n]`."""
        heads = np.nansum(self.heads, axis=(0, 1))
        biases = self.attention_bias.sum(axis=0) + self.mlps.sum(axis=0)
        out: Array = self.embedding + heads + biases + self.constant
        return out


@dataclass(frozen=True, slots=True, eq=False)
class Push:
    """What the heads write towards the most likely next token at one position.

    Effects are those of `heads_towards`; `score` is the logit of that token minus the mean logit.
    """

    tokens: tuple[int, ...]  # the most likely next tokens, the first one first
    probabilities: tuple[float, ...]
    heads: Array  # [L, H]; NaN for pruned heads
    score: float


@dataclass(frozen=True, slots=True, eq=False)
class _Terms:
    """The terms of the residual stream at one position, in float32, and their sum."""

    embedding: Tensor  # [C]
    heads: Tensor  # [L, H, C]
    attention_bias: Tensor  # [L, C]
    mlps: Tensor  # [L, C]
    resid: Tensor  # [C]


def value_norms(model: Model, trace: Trace, layer: int, head: int) -> Array:
    """Norms of the transformed value vectors f(x_j) = v_j W_O^h, `[T]` (Kobayashi et al. 2020).

    The pattern times these, `pattern * norms[None, :]`, is ||alpha_ij f(x_j)||. The bias of v is
    included, as in the paper; b_O is not, since it is added at every position whatever the head
    does. Raises HeadNotFound, and ShapeError for a trace of a model of another size.
    """
    _check_trace(model, trace)
    W_O = _W_O(model, layer, head).float().cpu()
    v = torch.from_numpy(trace.v[layer, head].copy())
    out: Array = (v @ W_O).norm(dim=-1).numpy()
    return out


@torch.inference_mode()
def direct_effects(
    model: Model, trace: Trace, tokens: Sequence[int] | None = None, *, position: int = -1
) -> DirectEffects:
    """The direct effect of each part of the model on the logits at one position of the text.

    The default is the last position. `tokens` are ids, by default the whole vocabulary, which takes
    4 L H V bytes. The model runs without the head gate that the trace may have had. Raises
    ShapeError for a trace of a model of another size, a position outside the text or an empty list
    of tokens; TextError for a token that the model does not have.
    """
    _check_trace(model, trace)
    ids = _token_ids(model, tokens)
    terms = _terms(model, trace, position)
    norm = model.network.frozen_final_norm(terms.resid)
    W_U = model.network.W_U.weight[torch.tensor(ids, device=model.device)].float()

    def logits(part: Tensor) -> Array:
        out: Array = (norm(part) @ W_U.T).cpu().numpy()
        return out

    return DirectEffects(
        tokens=ids,
        embedding=logits(terms.embedding),
        heads=logits(terms.heads),
        attention_bias=logits(terms.attention_bias),
        mlps=logits(terms.mlps),
        constant=(norm.bias @ W_U.T).cpu().numpy(),
    )


@torch.inference_mode()
def head_effect(
    model: Model,
    trace: Trace,
    layer: int,
    head: int,
    *,
    position: int = -1,
    on_progress: OnProgress | None = None,
) -> Array:
    """`[V]`: the direct effect of one head on the logits of the whole vocabulary.

    It equals `direct_effects(...).heads[layer, head]`. The model runs once more; `on_progress` is
    called with the fraction done, and an exception that it raises stops the run. Raises
    HeadNotFound, and ShapeError as `direct_effects` does.
    """
    _check_trace(model, trace)
    model.config.check_head(layer, head, model=model.description.name)
    terms = _terms(model, trace, position, on_progress)
    norm = model.network.frozen_final_norm(terms.resid)
    W_U = model.network.W_U.weight.float()
    out: Array = (norm(terms.heads[layer, head]) @ W_U.T).cpu().numpy()
    return out


@torch.inference_mode()
def heads_towards(
    model: Model,
    ids: Sequence[int],
    token: int,
    *,
    position: int = -1,
    head_gate: Array | None = None,
) -> Array:
    """`[L, H]`: how much each head raises the logit of a token above the mean of the vocabulary.

    It is the direct effect on that logit minus the mean of the direct effects on all logits, at one
    position of the text with these ids. `head_gate` `[L, H]` is that of `Model.trace_ids`; an
    ablated head raises nothing. NaN for pruned heads. Raises ShapeError for a position outside the
    text, TextError for ids that the model does not have.
    """
    given = model.check_ids(ids)
    model.check_vocabulary([token])
    if not -len(given) <= position < len(given):
        raise ShapeError(f"position = {position}; the text has positions 0 to {len(given) - 1}.")
    gate = None if head_gate is None else torch.tensor(head_gate, device=model.device)
    at = torch.tensor([given], device=model.device)
    terms = _run(model.network, at, position % len(given), None, gate)
    return _towards(model.network, terms.heads, terms.resid, token)


@torch.inference_mode()
def push(
    model: Model,
    trace: Trace,
    *,
    position: int = -1,
    k: int = 3,
    on_progress: OnProgress | None = None,
) -> Push:
    """What the heads write towards the most likely next token at a position; one pass.

    `tokens` are the `k` most likely ones. `on_progress` is called with the fraction done, and an
    exception that it raises stops the run. Raises ShapeError as `direct_effects` does.
    """
    _check_trace(model, trace)
    terms = _terms(model, trace, position, on_progress)
    logits = model.network.unembed(terms.resid.to(model.network.dtype)).float()
    likely = logits.softmax(-1).topk(k)
    token = int(likely.indices[0])
    return Push(
        tokens=tuple(likely.indices.tolist()),
        probabilities=tuple(likely.values.tolist()),
        heads=_towards(model.network, terms.heads, terms.resid, token),
        score=float(logits[token] - logits.mean()),
    )


@torch.inference_mode()
def telling_head(model: Model, trace: Trace) -> Head:
    """The head that writes most towards the most likely next token of the text.

    It needs no pass: z comes from the trace, and the scale of the final norm changes no order.
    Raises ShapeError for a trace of a model of another size.
    """
    _check_trace(model, trace)
    network, cfg = model.network, model.config
    scales = np.array(trace.scales, dtype=np.float32)[:, None, None]
    scores = np.einsum("lhd,lhtd->lht", trace.q[:, :, -1], trace.k) * scales
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    z = torch.from_numpy(np.einsum("lht,lhtd->lhd", weights, trace.v)).to(model.device)
    written = z.new_full((cfg.n_layers, cfg.n_heads, cfg.d_model), torch.nan)
    for layer, block in enumerate(network.blocks):
        kept = cfg.kept_heads(layer)
        written[layer, kept] = torch.einsum(
            "hd,hdc->hc", z[layer, kept], block.attn.W_O_by_head.float()
        )
    effects = _towards(network, written, written.nansum((0, 1)), int(trace.logits.argmax()))
    return Head(*divmod(int(np.nanargmax(effects)), cfg.n_heads))


def _towards(network: Network, heads: Tensor, resid: Tensor, token: int) -> Array:
    """`[L, H]`: the effect on the logit of a token of what the heads write, minus the mean's."""
    W_U = network.W_U.weight.float()
    out: Array = (
        (network.frozen_final_norm(resid)(heads) @ (W_U[token] - W_U.mean(0))).cpu().numpy()
    )
    return out


def ioi_direct_effects(
    model: Model, *, on_progress: OnProgress | None = None
) -> NDArray[np.float64]:
    """`[4, 4, L, H]`: each head's direct effect on logit(indirect object) - logit(repeated name).

    Over 4 openings and 4 pairs of names: sentences that name two people, then one of them again.
    Name movers raise the difference, negative name movers lower it (Wang et al. 2023).
    `on_progress` is called with the fraction done; an exception that it raises stops the work.
    Raises TextError if a name is not a single token of the model.
    """
    n_sentences = len(OPENINGS) * len(NAMES)
    differences = []
    for n, opening in enumerate(OPENINGS):
        for a, b in NAMES:
            # Neither the order of the names nor who is repeated may give the answer away.
            first, second = (a, b) if n % 2 else (b, a)
            repeated, other = (first, second) if n // 2 else (second, first)
            text = opening.format(a=first, b=second, s=repeated)
            pair = [model.single_token(f" {other}"), model.single_token(f" {repeated}")]
            effects = direct_effects(model, model.trace(text), pair)
            differences.append(effects.heads[..., 0] - effects.heads[..., 1])
            if on_progress is not None:
                on_progress(len(differences) / n_sentences)
    shape = len(OPENINGS), len(NAMES), model.config.n_layers, model.config.n_heads
    return np.stack(differences).astype(np.float64).reshape(shape)


def _terms(
    model: Model, trace: Trace, position: int, on_progress: OnProgress | None = None
) -> _Terms:
    """The terms of the residual stream after the last layer. Raises ShapeError for the position."""
    T = trace.n_tokens
    if not -T <= position < T:
        raise ShapeError(f"position = {position}; the text has positions 0 to {T - 1}.")
    ids = torch.tensor([trace.token_ids], device=model.device)
    return _run(model.network, ids, position % T, on_progress)


def _run(
    network: Network,
    ids: Tensor,
    position: int,
    on_progress: OnProgress | None,
    head_gate: Tensor | None = None,
) -> _Terms:
    cfg = network.config
    resid = network.embed(ids)
    embedding = resid[0, position].float()
    heads = embedding.new_full((cfg.n_layers, cfg.n_heads, cfg.d_model), torch.nan)
    attention_bias = embedding.new_zeros(cfg.n_layers, cfg.d_model)
    mlps = torch.zeros_like(attention_bias)
    for layer, block in enumerate(network.blocks):
        z = block.heads(resid).z
        if head_gate is not None:
            z = z * head_gate[layer, cfg.kept_heads(layer)][:, None, None].to(z.dtype)
        resid_mid = resid + block.attn.merge(z)
        mlp = block.mlp_output(resid, resid_mid)
        resid = resid_mid + mlp
        written = z[0, :, position, None].float() @ block.attn.W_O_by_head.float()
        heads[layer, cfg.kept_heads(layer)] = written[:, 0]
        if block.attn.W_O.bias is not None:
            attention_bias[layer] = block.attn.W_O.bias.float()
        mlps[layer] = mlp[0, position].float()
        if on_progress is not None:
            on_progress((layer + 1) / cfg.n_layers)
    return _Terms(embedding, heads, attention_bias, mlps, resid[0, position].float())


def _W_O(model: Model, layer: int, head: int) -> Tensor:
    """The part of W_O that a head writes through, `[d_h, C]`. Raises HeadNotFound."""
    model.config.check_head(layer, head, model=model.description.name)
    row = model.config.kept_heads(layer).index(head)
    return model.network.blocks[layer].attn.W_O_by_head[row].detach()


def _check_trace(model: Model, trace: Trace) -> None:
    cfg = model.config
    expected = (cfg.n_layers, cfg.n_heads, trace.n_tokens, cfg.d_head)
    if trace.q.shape != expected or len(trace.logits) != cfg.vocab_size:
        raise ShapeError(
            f"The trace has q {list(trace.q.shape)} and {len(trace.logits):,} logits; "
            f"{model.description.name} expects {list(expected)} and {cfg.vocab_size:,}. Trace the "
            "text with this model."
        )


def _token_ids(model: Model, tokens: Sequence[int] | None) -> tuple[int, ...]:
    ids = tuple(range(model.config.vocab_size) if tokens is None else tokens)
    if not ids:
        raise ShapeError("tokens is empty. Give token ids, or None for the whole vocabulary.")
    model.check_vocabulary(ids)
    return ids
