"""The loss of a model for each number of key/value heads, kept for all users."""

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from mha_viz.app.work.progress import Reporter
from mha_viz.callbacks import OnProgress
from mha_viz.lessons.grouped_query import grouped_gpt2
from mha_viz.model import Model
from mha_viz.pruning import Pass

MAX_KEPT = 256  # losses, over all models and texts

_measured: OrderedDict[tuple[str, int], float] = OrderedDict()
_lock = threading.Lock()


def losses_by_groups(
    key: str, model: Model, chunks: Sequence[list[int]], groups: Sequence[int], report: Reporter
) -> Iterator[tuple[int, float]]:
    """(G, loss) for each G: the mean over all tokens of all chunks, in nats.

    Keys and values are mean-pooled in every layer, without further training. `key` stands for the
    model and the chunks; losses that were measured for it before are not computed again.
    """
    for n_kv_heads in groups:
        loss = measured_loss(key, n_kv_heads)
        if loss is None:
            loss = loss_with(model, chunks, n_kv_heads, report)
            _keep(key, n_kv_heads, loss)
        yield n_kv_heads, loss


def measured_loss(key: str, n_kv_heads: int) -> float | None:
    """The loss that was measured before, if any."""
    with _lock:
        return _measured.get((key, n_kv_heads))


def loss_with(
    model: Model,
    chunks: Sequence[list[int]],
    n_kv_heads: int,
    report: OnProgress = lambda share: None,
) -> float:
    """The mean loss with that many key/value heads in every layer, in nats per token."""
    config = model.config
    if n_kv_heads != (config.n_kv_heads or config.n_heads):
        model = replace(model, network=grouped_gpt2(model.network, n_kv_heads))
    losses = []
    for number, chunk in enumerate(chunks):
        report(number / len(chunks))
        losses.append(Pass.of(model, chunk).losses())
    return float(np.concatenate(losses).mean(dtype=np.float64))


def _keep(key: str, n_kv_heads: int, loss: float) -> None:
    with _lock:
        _measured[key, n_kv_heads] = loss
        while len(_measured) > MAX_KEPT:
            _measured.popitem(last=False)
