"""What a head writes, and what that does: value-weighted attention and direct effects.

Everything that a GPT-2 adds to its residual stream is a sum, and the last LayerNorm is linear once
its scale is known. So each logit is a sum over what was added (Elhage et al. 2021):

    resid  = embedding + sum_l (sum_h z_lh W_O^lh + b_O^l + mlp_l)
    logits = (resid - mean(resid)) / sigma * gamma W_U + beta W_U

with the sigma of the actual run. A direct effect is one term of that sum, on the way that leads
past all later layers; what later layers make of it is not in it, and they may undo it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mha_viz.errors import ShapeError, TextError
from mha_viz.gpt2 import GPT2
from mha_viz.head import Head
from mha_viz.model import Model
from mha_viz.trace import Array, Trace

# Two names, and one of them again: the next is the other (Wang et al. 2022, section 2). Own words.
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

    A number that is the same for all tokens changes no probability: compare tokens, not zero.
    """

    tokens: tuple[int, ...]
    embedding: Array  # [n], of the token and its position
    heads: Array  # [L, H, n]; NaN for heads that were taken out
    attention_bias: Array  # [L, n], of b_O, which belongs to no head
    mlps: Array  # [L, n]
    constant: Array  # [n], of the bias beta of the last LayerNorm

    @property
    def total(self) -> Array:
        """The logits `[n]`."""
        heads = np.nansum(self.heads, axis=(0, 1))
        biases = self.attention_bias.sum(axis=0) + self.mlps.sum(axis=0)
        out: Array = self.embedding + heads + biases + self.constant
        return out


def value_norms(model: Model, trace: Trace, layer: int, head: int) -> Array:
    """`[T]`: the norms ||f(x_j)|| of what position j offers through this head, f(x_j) = v_j W_O^h.

    The pattern times them, `pattern * norms[None, :]`, is ||alpha_ij f(x_j)|| (Kobayashi et al.
    2020). The bias of v is in it, as there; b_O is not, since it reaches every position whatever
    the head does. Raises HeadNotFound, and ShapeError for a trace of a model of another size.
    """
    _check_trace(model, trace)
    W_O = _W_O(model.network, layer, head).float().cpu()
    v = torch.from_numpy(trace.v[layer, head].copy())
    out: Array = (v @ W_O).norm(dim=-1).numpy()
    return out


@torch.inference_mode()
def direct_effects(
    model: Model, trace: Trace, tokens: Sequence[int] | None = None, *, position: int = -1
) -> DirectEffects:
    """The direct effect of every part of the model on the logits at one position of the text.

    At the last unless given, and of the tokens given or else the whole vocabulary, which takes
    4 L H V bytes. It is the whole model's, whatever gate the trace was made under. Raises
    ShapeError for a trace of a model of another size, a position that is not there or no tokens;
    TextError for a token that the model does not have.
    """
    _check_trace(model, trace)
    chosen = _tokens(model, tokens)
    parts = _parts(model, trace, position)
    W_U = model.network.W_U.weight[torch.tensor(chosen, device=model.device)].float()
    return DirectEffects(
        tokens=chosen,
        embedding=parts.effect(parts.embedding, W_U),
        heads=parts.effect(parts.heads, W_U),
        attention_bias=parts.effect(parts.attention_bias, W_U),
        mlps=parts.effect(parts.mlps, W_U),
        constant=(model.network.ln_f.bias.float() @ W_U.T).cpu().numpy(),
    )


@torch.inference_mode()
def head_effect(
    model: Model,
    trace: Trace,
    layer: int,
    head: int,
    *,
    position: int = -1,
    on_progress: Callable[[float], object] = lambda share: None,
) -> Array:
    """`[V]`: the direct effect of one head on the logits of the whole vocabulary.

    It is that head of `direct_effects`. The model runs once more; `on_progress` is called with the
    fraction done after each layer, and may raise to stop. Raises HeadNotFound, and ShapeError as
    `direct_effects` does.
    """
    _check_trace(model, trace)
    _W_O(model.network, layer, head)  # raises where there is none
    parts = _parts(model, trace, position, on_progress)
    return parts.effect(parts.heads[layer, head], model.network.W_U.weight.float())


def _parts(
    model: Model,
    trace: Trace,
    position: int,
    on_progress: Callable[[float], object] = lambda share: None,
) -> "_Parts":
    T = trace.n_tokens
    if not -T <= position < T:
        raise ShapeError(f"position = {position}; the text has {T} tokens, counted from 0.")
    ids = torch.tensor([trace.token_ids], device=model.device)
    return _Parts(model.network, ids, position % T, on_progress)


def ioi_direct_effects(
    model: Model, *, on_progress: Callable[[float], object] = lambda share: None
) -> NDArray[np.float64]:
    """`[n, L, H]`: each head's direct effect on logit(other name) - logit(repeated name).

    Over n = 16 sentences that name two people and then one of them again. Name movers raise the
    difference and negative ones lower it (Wang et al. 2023). `on_progress` is called with the
    fraction done, and may raise to stop. Raises TextError where a name is not a single token of
    the model's vocabulary.
    """
    found = []
    for n, opening in enumerate(OPENINGS):
        for a, b in NAMES:
            # Who stands first, and who is named again, change: neither place may tell the answer.
            first, second = (a, b) if n % 2 else (b, a)
            repeated, other = (first, second) if n // 2 else (second, first)
            text = opening.format(a=first, b=second, s=repeated)
            pair = [_name_token(model, other), _name_token(model, repeated)]
            effects = direct_effects(model, model.trace(text), pair)
            found.append(effects.heads[..., 0] - effects.heads[..., 1])
            on_progress(len(found) / (len(OPENINGS) * len(NAMES)))
    return np.stack(found).astype(np.float64)


class _Parts:
    """What was added to the residual stream at one position, in float32, and the sum of it."""

    def __init__(
        self, network: GPT2, ids: Tensor, position: int, on_progress: Callable[[float], object]
    ) -> None:
        cfg = network.config
        resid = network.wte(ids) + network.wpe.weight[: ids.shape[1]]
        self.embedding = resid[0, position].float()
        self.heads = resid.new_full((cfg.n_layers, cfg.n_heads, cfg.d_model), torch.nan).float()
        self.attention_bias = self.heads.new_zeros(cfg.n_layers, cfg.d_model)
        self.mlps = torch.zeros_like(self.attention_bias)
        for layer, block in enumerate(network.blocks):
            z = block.attn.attend(*block.attn.project(block.ln_1(resid)))
            resid = resid + block.attn.merge(z)
            mlp = block.mlp(block.ln_2(resid))
            resid = resid + mlp
            for row, head in enumerate(cfg.kept_heads(layer)):
                W_O = _W_O(network, layer, head)
                self.heads[layer, head] = z[0, row, position].float() @ W_O.float()
            if block.attn.W_O.bias is not None:
                self.attention_bias[layer] = block.attn.W_O.bias.float()
            self.mlps[layer] = mlp[0, position].float()
            on_progress((layer + 1) / cfg.n_layers)
        self._ln_f = network.ln_f
        self._sigma = (resid[0, position].float().var(unbiased=False) + network.ln_f.eps).sqrt()

    def effect(self, part: Tensor, W_U: Tensor) -> Array:
        """What a part `[..., C]` adds to the logits of the rows of W_U `[n, C]`: `[..., n]`.

        The last LayerNorm, without its bias and at the scale that it has in this run, is linear.
        """
        centred = part - part.mean(dim=-1, keepdim=True)
        out: Array = (centred / self._sigma * self._ln_f.weight.float() @ W_U.T).cpu().numpy()
        return out


def _W_O(network: GPT2, layer: int, head: int) -> Tensor:
    """The rows of W_O that a head writes through, `[d_h, C]`. Raises HeadNotFound."""
    cfg, d_h = network.config, network.config.d_head
    kept = cfg.kept_heads(layer) if 0 <= layer < cfg.n_layers else []
    Head(layer, head).check(cfg.n_layers, cfg.n_heads, kept, model="this model")
    start = kept.index(head) * d_h
    return network.blocks[layer].attn.W_O.weight[:, start : start + d_h].detach().T


def _check_trace(model: Model, trace: Trace) -> None:
    cfg = model.config
    expected = (cfg.n_layers, cfg.n_heads, trace.n_tokens, cfg.d_head)
    if trace.q.shape != expected or len(trace.logits) != cfg.vocab_size:
        raise ShapeError(
            f"The trace has q {list(trace.q.shape)} and {len(trace.logits):,} logits; "
            f"{model.description.name} makes {list(expected)} and {cfg.vocab_size:,}. Trace the "
            "text with this model."
        )


def _tokens(model: Model, tokens: Sequence[int] | None) -> tuple[int, ...]:
    V = model.config.vocab_size
    chosen = tuple(range(V) if tokens is None else tokens)
    if not chosen:
        raise ShapeError("There are no tokens; give the ids of some, or none at all for every one.")
    if not 0 <= min(chosen) <= max(chosen) < V:
        raise TextError(
            f"The tokens reach from {min(chosen)} to {max(chosen)}; {model.description.name} "
            f"knows those from 0 to {V - 1}."
        )
    return chosen


def _name_token(model: Model, name: str) -> int:
    ids, _ = model.encode(f" {name}")
    if len(ids) != 1:
        raise TextError(
            f"The name {name} is {len(ids)} tokens of {model.description.name}; this task needs "
            "names of one token each. Try it with a larger vocabulary, as GPT-2's."
        )
    return ids[0]
