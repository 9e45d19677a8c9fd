"""Next-token predictions: at every position, after every layer (logit lens), and in generation.

    p(next | tokens 0 … t) = softmax(W_U final_norm(resid_t))                Radford et al. 2019
    loss_t = -ln p(token t + 1 | tokens 0 … t)                               in nats

With the residual stream after the last layer, this is the model's prediction. With an earlier one,
it is what the model would predict if it stopped there: the logit lens (nostalgebraist 2020).
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mha_viz.analysis.generation import GREEDY, Sampling, chooser, probabilities
from mha_viz.attention import KVCache
from mha_viz.callbacks import OnProgress
from mha_viz.errors import ShapeError
from mha_viz.model import Model
from mha_viz.network import Network
from mha_viz.trace import Array

POSITIONS = 64  # positions whose logits are in memory at the same time


@dataclass(frozen=True, slots=True, eq=False)
class Predictions:
    """The predictions at n positions, from the residual stream after one layer.

    The actual next token of the last position of a text is unknown: its values are NaN, its rank 0.
    """

    ids: NDArray[np.int64]  # [n, k], the most likely tokens first
    probabilities: Array  # [n, k]
    p_final: Array  # [n], of the token that is most likely after the last layer
    p_actual: Array  # [n], of the actual next token
    losses: Array  # [n], of the actual next token, in nats
    ranks: NDArray[np.int64]  # [n], of the actual next token, from 1


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One token of a continuation and the candidates for it.

    Candidates are the most likely tokens, and the token that was taken if it is not among them.
    `queries` and `keys` are what `attention_row` reads.
    """

    position: int  # of the token that was taken; the query is the position before it
    token: int
    rank: int  # of that token among all, from 1
    probability: float  # of that token in the model's prediction
    loss: float  # of that token, in nats
    ids: NDArray[np.int64]  # [n], the candidates
    p_model: Array  # [n], in the model's prediction
    p_sampling: Array  # [n], after temperature, top-k and top-p; `p_model` for a given token
    n_possible: int  # tokens of the vocabulary with p_sampling above 0
    queries: tuple[Tensor, ...] = field(repr=False)  # for each layer [H, d_h], of the query
    keys: tuple[Tensor, ...] = field(repr=False)  # for each layer [G, position, d_h], the cache


def join(parts: Sequence[Predictions]) -> Predictions:
    """Joins batches of positions into one. Raises ShapeError for an empty list."""
    if not parts:
        raise ShapeError("There are no predictions to join. Give at least one batch.")
    names = [f.name for f in fields(Predictions)]
    return Predictions(**{n: np.concatenate([getattr(part, n) for part in parts]) for n in names})


@torch.inference_mode()
def predict(
    model: Model, ids: Sequence[int], k: int = 10, *, on_progress: OnProgress | None = None
) -> Iterator[Predictions]:
    """The k most likely next tokens after each position of `ids`, a batch of positions at a time.

    `on_progress` is called with the fraction of layers done, before the first batch; an exception
    that it raises stops the work. Raises ShapeError for k below 1 or above the vocabulary's size;
    TextError as `Model.check_ids` does.
    """
    _check(model, ids, k)
    network, T = model.network, len(ids)
    (resid,) = deque(_residuals(network, ids, range(T), on_progress), maxlen=1)
    for start in range(0, T, POSITIONS):
        batch = range(start, min(start + POSITIONS, T))
        logits = network.unembed(resid[batch.start : batch.stop]).float()
        yield _predictions(logits, logits.argmax(-1), _next_ids(ids, batch), k)


@torch.inference_mode()
def lens(
    model: Model,
    ids: Sequence[int],
    positions: range | None = None,
    k: int = 5,
    *,
    on_progress: OnProgress | None = None,
) -> Iterator[Predictions]:
    """The logit lens: the predictions at `positions`, L + 1 times, starting at the embedding.

    The final norm and W_U are applied to the residual stream before the first block and after each
    block; the last is the model's prediction. The default is all positions; those after the last
    one given are not computed. `on_progress` is called with the fraction of layers done. Raises
    ShapeError for positions outside the text or more than POSITIONS of them, and as `predict` does.
    """
    _check(model, ids, k)
    asked = range(len(ids)) if positions is None else positions
    if not asked or asked.step != 1 or asked.start < 0 or asked.stop > len(ids):
        raise ShapeError(
            f"positions = {asked.start} to {asked.stop - 1}; the text has positions 0 to "
            f"{len(ids) - 1:,}."
        )
    if len(asked) > POSITIONS:
        raise ShapeError(
            f"{len(asked):,} positions; each needs the logits of the whole vocabulary, so give at "
            f"most {POSITIONS}."
        )
    network = model.network
    streams = list(_residuals(network, ids, asked, on_progress))
    final = network.unembed(streams[-1]).argmax(-1)
    for resid in streams:
        yield _predictions(network.unembed(resid).float(), final, _next_ids(ids, asked), k)


def continue_text(
    model: Model,
    ids: Sequence[int],
    n_new: int,
    *,
    sampling: Sampling = GREEDY,
    n_candidates: int = 8,
    on_progress: OnProgress | None = None,
) -> Iterator[Step]:
    """Generates the next `n_new` tokens after `ids`, with the key/value cache.

    The tokens are those of `generation.generate`; fewer if n_positions is reached. `on_progress` is
    called with the fraction of layers that have read `ids`, before the first step. Raises TextError
    as `Model.check_ids` does.
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
    on_progress: OnProgress | None = None,
) -> Iterator[Step]:
    """Scores the `given` tokens after `ids`: each as a step, with the prediction made before it.

    The product of their probabilities is that of the whole continuation. There are fewer steps
    if n_positions is reached. Raises TextError as `continue_text` does.
    """
    _check(model, ids, n_candidates)
    kept = given[: model.config.n_positions - len(ids)]
    return _steps(model.network, ids, kept, None, n_candidates, on_progress)


def attention_row(model: Model, step: Step, layer: int, head: int) -> Array:
    """`[position]`: attention weights of the step's query over all positions so far; they sum to 1.

    Computed from the step's query and the cached keys. Raises HeadNotFound.
    """
    model.config.check_head(layer, head, model=model.description.name)
    row = model.config.kept_heads(layer).index(head)
    attention = model.network.blocks[layer].attn
    q, k = step.queries[layer][row], step.keys[layer]
    group_size = attention.n_heads // attention.n_kv_heads
    scores = (k[row // group_size].float() @ q.float()) * attention.scale
    out: Array = scores.softmax(-1).cpu().numpy()
    return out


@torch.inference_mode()
def _steps(
    network: Network,
    ids: Sequence[int],
    given: Sequence[int | None],
    sampling: Sampling | None,
    n_candidates: int,
    on_progress: OnProgress | None,
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
    network: Network, new: Sequence[int], cache: Sequence[KVCache], on_progress: OnProgress | None
) -> tuple[Tensor, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Logits `[V]` at the last of the `new` tokens, its queries, and all keys so far."""
    resid = network.embed(torch.tensor([list(new)], device=network.device), cache[0].length)
    queries, keys = [], []
    for layer, (block, of_layer) in enumerate(zip(network.blocks, cache, strict=True)):
        q, k, _, z = block.heads(resid, cache=of_layer)
        resid = block.after_attention(resid, block.attn.merge(z))
        queries.append(q[0, :, -1].clone())  # a view would keep the queries of the whole text
        keys.append(k[0])
        if on_progress is not None:
            on_progress((layer + 1) / len(network.blocks))
    return network.unembed(resid[0, -1:])[0].float(), tuple(queries), tuple(keys)


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
    p_model = log_p.exp()
    p_sampling = p_model if sampling is None else probabilities(logits, sampling)
    top = p_model.topk(n_candidates).indices.tolist()
    candidates = top if token in top else [*top, token]
    return Step(
        position=position,
        token=token,
        rank=int((logits > logits[token]).sum()) + 1,
        probability=float(p_model[token]),
        loss=-float(log_p[token]),
        ids=np.array(candidates, dtype=np.int64),
        p_model=p_model[candidates].numpy(),
        p_sampling=p_sampling[candidates].numpy(),
        n_possible=int((p_sampling > 0).sum()),
        queries=queries,
        keys=keys,
    )


def _residuals(
    network: Network, ids: Sequence[int], positions: range, on_progress: OnProgress | None
) -> Iterator[Tensor]:
    """The residual stream `[n, C]` at the positions, before the first block and after each."""
    tokens = torch.tensor([list(ids[: positions.stop])], device=network.device)
    for n_done, resid in enumerate(network.residuals(tokens)):
        if n_done and on_progress is not None:
            on_progress(n_done / len(network.blocks))
        yield resid[0, positions.start : positions.stop]


def _next_ids(ids: Sequence[int], positions: range) -> list[int]:
    """The token after each position; -1 at the end of the text."""
    after = list(ids[positions.start + 1 : positions.stop + 1])
    return after + [-1] * (len(positions) - len(after))


def _predictions(logits: Tensor, final: Tensor, next_ids: Sequence[int], k: int) -> Predictions:
    """From float32 logits `[n, V]`, the final layer's top token `[n]` and the actual next ids."""
    log_p = logits.log_softmax(-1)
    top = log_p.topk(k)
    actual = torch.tensor(next_ids, device=logits.device)
    unknown = actual < 0
    log_p_actual = log_p.gather(-1, actual.clamp(min=0)[:, None])
    losses = (-log_p_actual[:, 0]).masked_fill(unknown, torch.nan)
    ranks = ((log_p > log_p_actual).sum(-1) + 1).masked_fill(unknown, 0)
    return Predictions(
        ids=top.indices.cpu().numpy(),
        probabilities=top.values.exp().cpu().numpy(),
        p_final=log_p.gather(-1, final[:, None])[:, 0].exp().cpu().numpy(),
        p_actual=(-losses).exp().cpu().numpy(),
        losses=losses.cpu().numpy(),
        ranks=ranks.cpu().numpy(),
    )


def _check(model: Model, ids: Sequence[int], k: int) -> None:
    model.check_ids(ids)
    V = model.config.vocab_size
    if not 1 <= k <= V:
        raise ShapeError(f"{k} tokens per position; give 1 to {V:,}, the vocabulary's size.")
