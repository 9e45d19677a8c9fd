"""The effects of a change on one text: on the next token, at each position, on each pattern."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mha_viz.errors import ShapeError, TextError
from mha_viz.pruning.ablation import Scores
from mha_viz.pruning.passes import Pass, pattern_and_values
from mha_viz.trace import Array

ROWS = 64  # positions whose logits are in memory at the same time


@dataclass(frozen=True, slots=True)
class Candidate:
    """A next token: its probability before and after, and its rank among all tokens, from 1."""

    id: int
    before: float
    after: float
    rank_before: int
    rank_after: int


@torch.inference_mode()
def next_tokens(
    before: Pass, after: Pass, k: int = 10, *, also: Iterable[int] = ()
) -> list[Candidate]:
    """The k most likely next tokens before the change, then after it, then `also`; no repeats.

    Raises ShapeError for passes over different texts, TextError for an id that the model does not
    have.
    """
    _same_text(before, after)
    p, q = (_log_probabilities(one, slice(-1, None))[0] for one in (before, after))
    wanted = [*p.topk(min(k, len(p))).indices.tolist(), *q.topk(min(k, len(q))).indices.tolist()]
    for token in also:
        if not 0 <= token < len(p):
            raise TextError(f"There is no token id {token}; ids range from 0 to {len(p) - 1}.")
        wanted.append(token)
    return [
        Candidate(
            token, float(p[token].exp()), float(q[token].exp()),
            int((p > p[token]).sum()) + 1, int((q > q[token]).sum()) + 1,
        )
        for token in dict.fromkeys(wanted)
    ]  # fmt: skip


@torch.inference_mode()
def divergence(before: Pass, after: Pass) -> Array:
    """`[T]`: KL(before || after) of the next token at each position, in nats.

    sum_v p_v (ln p_v - ln q_v): the extra loss of predicting with q where tokens follow p. Raises
    ShapeError for passes over different texts.
    """
    _same_text(before, after)
    T = before.ids.shape[1]
    parts = []
    for start in range(0, T, ROWS):
        rows = slice(start, start + ROWS)
        p, q = _log_probabilities(before, rows), _log_probabilities(after, rows)
        parts.append((p.exp() * (p - q)).sum(-1))
    # The divergence is never negative, but a sum of rounded terms can be slightly so.
    result: Array = torch.cat(parts).clamp(min=0).cpu().numpy()
    return result


@torch.inference_mode()
def pattern_change(before: Pass, after: Pass, queries: NDArray[np.intp] | None = None) -> Scores:
    """`[L, H]`: the distance of each head's patterns; 0 is no change, 1 is no key in common.

    It is the mean over queries i >= 1 of the total variation distance, sum_j |A_ij - A'_ij| / 2.
    `queries` = `trace.text_queries` leaves out special tokens. NaN for pruned heads. Raises
    ShapeError for passes over different texts.
    """
    _same_text(before, after)
    cfg = before.network.config
    changes = np.full((cfg.n_layers, cfg.n_heads), np.nan)
    rows = slice(1, None) if queries is None else torch.from_numpy(queries[queries > 0])
    for layer, block in enumerate(before.network.blocks):
        kept, pair = cfg.kept_heads(layer), (before.resid[layer], after.resid[layer])
        if pair[0] is pair[1]:
            changes[layer, kept] = 0.0
            continue
        a, b = (pattern_and_values(block, resid)[0] for resid in pair)
        distance = (a - b).abs_()[:, rows].sum(-1) / 2
        changes[layer, kept] = distance.mean(-1).cpu().double().numpy()
    return changes


def _log_probabilities(one: Pass, positions: slice) -> Tensor:
    return one.network.unembed(one.resid[-1][0, positions]).float().log_softmax(-1)


def _same_text(before: Pass, after: Pass) -> None:
    if before.network is not after.network or not torch.equal(before.ids, after.ids):
        raise ShapeError(
            "The passes differ in text or network. Compare passes of one network over one text."
        )
