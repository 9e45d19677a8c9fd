"""What a model expects: at every position of a text, after every layer, and as the text goes on.

    p(next | tokens 0 … t) = softmax(ln_f(resid_t) W_U)                      Radford et al. 2019
    loss_t = -ln p(token t + 1 | tokens 0 … t)                               in nats

After the last layer `resid` gives what the model says. After an earlier one it gives what the
model would say, were it to stop there: the logit lens (nostalgebraist 2020).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mha_viz.analysis.generation import GREEDY, Sampling, chooser, probabilities
from mha_viz.attention import KVCache
from mha_viz.errors import ShapeError, TextError
from mha_viz.gpt2 import GPT2
from mha_viz.head import Head
from mha_viz.model import Model
from mha_viz.trace import Array

POSITIONS = 64  # whose logits over the whole vocabulary exist at once
Progress = Callable[[float], None]  # is told a share from 0 to 1, and may raise to stop


@dataclass(frozen=True, slots=True, eq=False)
class Predictions:
    """What is expected after n positions, read off one layer."""

    ids: NDArray[np.int64]  # [n, k], the likeliest first
    probabilities: Array  # [n, k]
    p_final: Array  # [n], of the token that the last layer puts first
    p_actual: Array  # [n], of the token that does follow; NaN where the text ends
    losses: Array  # [n], of that token, in nats
    ranks: NDArray[np.int64]  # [n], of that token, from 1 on; 0 where the text ends


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One token of a continuation, and what it was chosen from.

    Candidates are the likeliest tokens, and the chosen one last where it is none of them. `queries`
    and `keys` are what `attention_row` reads.
    """

    position: int  # of the chosen token; the one before it asks
    token: int
    rank: int  # of the chosen token among all, from 1 on
    probability: float  # of it, as the model says
    loss: float  # of it, in nats
    ids: NDArray[np.int64]  # [n], the candidates
    p_model: Array  # [n], as the model says
    p_sampling: Array  # [n], what was drawn from; `p_model` where the token was given
    n_possible: int  # tokens that could be drawn
    queries: tuple[Tensor, ...] = field(repr=False)  # a layer [H, d_h], of the token that asks
    keys: tuple[Tensor, ...] = field(repr=False)  # a layer [G, position, d_h], seen in the cache


def join(parts: Sequence[Predictions]) -> Predictions:
    """Blocks of positions as one. Raises ShapeError for none."""
    if not parts:
        raise ShapeError("There are no blocks of positions to join; give at least one.")
    names = [f.name for f in fields(Predictions)]
    return Predictions(**{n: np.concatenate([getattr(part, n) for part in parts]) for n in names})


@torch.inference_mode()
def predict(
    model: Model, ids: Sequence[int], k: int = 10, *, on_progress: Progress | None = None
) -> Iterator[Predictions]:
    """What the model expects after each position of `ids`, a block of positions at a time.

    Raises ShapeError for k below 1 or beyond the vocabulary; TextError for no ids or more than
    n_positions.
    """
    _check(model, ids, k)
    network, T = model.network, len(ids)
    *_, resid = _residuals(network, ids, range(T), on_progress)
    for start in range(0, T, POSITIONS):
        block = range(start, min(start + POSITIONS, T))
        logits = _logits(network, resid[block.start : block.stop])
        yield _read(logits, logits.argmax(-1), _following(ids, block), k)


@torch.inference_mode()
def lens(
    model: Model,
    ids: Sequence[int],
    positions: range | None = None,
    k: int = 5,
    *,
    on_progress: Progress | None = None,
) -> Iterator[Predictions]:
    """What is expected after `positions`, all unless given: L + 1 times, embedding first.

    ln_f and W_U are applied to the residual stream after the embedding and after each block. The
    last of them is what the model says. Positions beyond the last one asked for are not computed.
    Raises ShapeError for positions that are not there or more than POSITIONS of them, and as
    `predict` does.
    """
    _check(model, ids, k)
    asked = range(len(ids)) if positions is None else positions
    if not asked or asked.step != 1 or asked.start < 0 or asked.stop > len(ids):
        raise ShapeError(
            f"The positions {asked.start} to {asked.stop - 1} are not all among the "
            f"{len(ids):,} of the text; give some that are."
        )
    if len(asked) > POSITIONS:
        raise ShapeError(
            f"{len(asked):,} positions at once; each takes the logits of a whole vocabulary. Give "
            f"at most {POSITIONS}."
        )
    network = model.network
    streams = list(_residuals(network, ids, asked, on_progress))
    final = _logits(network, streams[-1]).argmax(-1)
    for resid in streams:
        yield _read(_logits(network, resid), final, _following(ids, asked), k)


def continue_text(
    model: Model,
    ids: Sequence[int],
    n_new: int,
    *,
    sampling: Sampling = GREEDY,
    n_candidates: int = 8,
    on_progress: Progress | None = None,
) -> Iterator[Step]:
    """The next `n_new` tokens after `ids`, with the key/value cache; n_positions may end them.

    They are those of `generation.generate`. `on_progress` is told how much of `ids` is read,
    before the first step. Raises TextError for no ids or more than n_positions.
    """
    _check(model, ids, n_candidates)
    n = min(n_new, model.config.n_positions - len(ids))
    return _steps(model.network, ids, [None] * n, sampling, n_candidates, on_progress)


def score_continuation(
    model: Model,
    ids: Sequence[int],
    given: Sequence[int],
    *,
    n_candidates: int = 8,
    on_progress: Progress | None = None,
) -> Iterator[Step]:
    """The `given` tokens after `ids`, each with what the model expected there.

    Their probabilities multiply to that of the whole continuation. n_positions may end them.
    Raises TextError as `continue_text` does.
    """
    _check(model, ids, n_candidates)
    kept = given[: model.config.n_positions - len(ids)]
    return _steps(model.network, ids, kept, None, n_candidates, on_progress)


def attention_row(model: Model, step: Step, layer: int, head: int) -> Array:
    """`[position]`: how much the token that asked for this step looks at each so far; adds up to 1.

    From its query and the keys in the cache. Raises HeadNotFound for a head that is not there.
    """
    config = model.config
    kept = config.kept_heads(layer) if 0 <= layer < config.n_layers else []
    Head(layer, head).check(config.n_layers, config.n_heads, kept, model=model.description.name)
    row = kept.index(head)
    attention = model.network.blocks[layer].attn
    q, k = step.queries[layer][row], step.keys[layer]
    shared = attention.n_heads // attention.n_kv_heads
    scores = (k[row // shared].float() @ q.float()) * attention.scale
    out: Array = scores.softmax(-1).cpu().numpy()
    return out


@torch.inference_mode()
def _steps(
    network: GPT2,
    ids: Sequence[int],
    given: Sequence[int | None],
    sampling: Sampling | None,
    n_candidates: int,
    on_progress: Progress | None,
) -> Iterator[Step]:
    choose = chooser(sampling or GREEDY)
    cache = network.empty_cache(len(ids) + len(given))
    new, position = list(ids), len(ids)
    for wanted in given:
        logits, queries, keys = _newest(network, new, cache, on_progress)
        token = choose(logits) if wanted is None else wanted
        yield _step(logits.cpu(), token, position, sampling, n_candidates, queries, keys)
        new, position, on_progress = [token], position + 1, None


def _newest(
    network: GPT2, new: Sequence[int], cache: Sequence[KVCache], on_progress: Progress | None
) -> tuple[Tensor, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Logits `[V]` at the last of the `new` tokens, its queries, and all keys so far."""
    past = cache[0].length
    resid = _embedded(network, new, past)
    queries, keys = [], []
    for layer, (block, held) in enumerate(zip(network.blocks, cache, strict=True)):
        q, k, v = block.attn.project(block.ln_1(resid))
        k, v = held.append(k, v)
        resid = resid + block.attn.merge(block.attn.attend(q, k, v, past=past))
        resid = resid + block.mlp(block.ln_2(resid))
        queries.append(q[0, :, -1].clone())  # else the queries of the whole text would be kept
        keys.append(k[0])
        if on_progress is not None:
            on_progress((layer + 1) / len(network.blocks))
    return _logits(network, resid[0, -1:])[0], tuple(queries), tuple(keys)


def _step(
    logits: Tensor,
    token: int,
    position: int,
    sampling: Sampling | None,
    n_candidates: int,
    queries: tuple[Tensor, ...],
    keys: tuple[Tensor, ...],
) -> Step:
    log_p = logits.log_softmax(-1)
    says = log_p.exp()
    drawn_from = says if sampling is None else probabilities(logits, sampling)
    likeliest = says.topk(n_candidates).indices.tolist()
    candidates = likeliest if token in likeliest else [*likeliest, token]
    return Step(
        position=position,
        token=token,
        rank=int((logits > logits[token]).sum()) + 1,
        probability=float(says[token]),
        loss=-float(log_p[token]),
        ids=np.array(candidates, dtype=np.int64),
        p_model=says[candidates].numpy(),
        p_sampling=drawn_from[candidates].numpy(),
        n_possible=int((drawn_from > 0).sum()),
        queries=queries,
        keys=keys,
    )


def _residuals(
    network: GPT2, ids: Sequence[int], positions: range, on_progress: Progress | None
) -> Iterator[Tensor]:
    """The residual stream `[n, C]` at the positions, after the embedding and after each block."""
    resid = _embedded(network, ids[: positions.stop], 0)
    at = slice(positions.start, positions.stop)
    yield resid[0, at]
    for layer, block in enumerate(network.blocks):
        resid = block(resid)
        if on_progress is not None:
            on_progress((layer + 1) / len(network.blocks))
        yield resid[0, at]


def _embedded(network: GPT2, ids: Sequence[int], first: int) -> Tensor:
    tokens = torch.tensor([list(ids)], device=network.wte.weight.device)
    out: Tensor = network.wte(tokens) + network.wpe.weight[first : first + len(ids)]
    return out


def _logits(network: GPT2, resid: Tensor) -> Tensor:
    """`[n, V]`, in float32, for a residual stream `[n, C]`."""
    out: Tensor = network.W_U(network.ln_f(resid)).float()
    return out


def _following(ids: Sequence[int], positions: range) -> list[int]:
    """The token after each position; -1 where the text ends."""
    after = list(ids[positions.start + 1 : positions.stop + 1])
    return after + [-1] * (len(positions) - len(after))


def _read(logits: Tensor, final: Tensor, following: Sequence[int], k: int) -> Predictions:
    log_p = logits.log_softmax(-1)
    top = log_p.topk(k)
    next_ids = torch.tensor(following, device=logits.device)
    ends = next_ids < 0
    said = log_p.gather(-1, next_ids.clamp(min=0)[:, None])
    losses = (-said[:, 0]).masked_fill(ends, torch.nan)
    ranks = ((log_p > said).sum(-1) + 1).masked_fill(ends, 0)
    return Predictions(
        ids=top.indices.cpu().numpy(),
        probabilities=top.values.exp().cpu().numpy(),
        p_final=log_p.gather(-1, final[:, None])[:, 0].exp().cpu().numpy(),
        p_actual=(-losses).exp().cpu().numpy(),
        losses=losses.cpu().numpy(),
        ranks=ranks.cpu().numpy(),
    )


def _check(model: Model, ids: Sequence[int], k: int) -> None:
    limit, V = model.config.n_positions, model.config.vocab_size
    if not 1 <= len(ids) <= limit:
        raise TextError(
            f"There are {len(ids):,} token ids; {model.description.name} reads from 1 to "
            f"{limit:,} at once. Give as many."
        )
    if not 1 <= k <= V:
        raise ShapeError(f"{k} tokens at each position; the vocabulary has {V:,}. Give 1 to {V:,}.")
