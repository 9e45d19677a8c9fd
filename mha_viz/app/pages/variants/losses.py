"""The loss of a model against its number of key/value heads, kept for all visitors."""

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from mha_viz.app.work.progress import Reporter
from mha_viz.lessons.grouped_query import grouped_gpt2
from mha_viz.model import Model
from mha_viz.pruning import Pass

MOST_KEPT = 256  # numbers, of all models and texts

_known: OrderedDict[tuple[str, int], float] = OrderedDict()
_guard = threading.Lock()


def measured(
    key: str, model: Model, pieces: Sequence[list[int]], groups: Sequence[int], report: Reporter
) -> Iterator[tuple[int, float]]:
    """(G, loss) for each G: the mean over all tokens of all pieces, in nats.

    Keys and values are pooled in every layer and nothing is trained afterwards. `key` names model
    and pieces; what it is known for is not computed again.
    """
    for n_kv_heads in groups:
        loss = known(key, n_kv_heads)
        if loss is None:
            loss = _loss(model, pieces, n_kv_heads, report)
            _keep(key, n_kv_heads, loss)
        yield n_kv_heads, loss


def known(key: str, n_kv_heads: int) -> float | None:
    """The loss that was measured before, if any."""
    with _guard:
        return _known.get((key, n_kv_heads))


def _loss(model: Model, pieces: Sequence[list[int]], n_kv_heads: int, report: Reporter) -> float:
    config = model.config
    if n_kv_heads != (config.n_kv_heads or config.n_heads):
        model = replace(model, network=grouped_gpt2(model.network, n_kv_heads))
    found = []
    for number, piece in enumerate(pieces):
        report(number / len(pieces))
        found.append(Pass.of(model, piece).losses())
    return float(np.concatenate(found).mean(dtype=np.float64))


def _keep(key: str, n_kv_heads: int, loss: float) -> None:
    with _guard:
        _known[key, n_kv_heads] = loss
        while len(_known) > MOST_KEPT:
            _known.popitem(last=False)
