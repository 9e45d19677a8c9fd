"""The order in which heads are removed: computed once, recomputed after each head, or random.

An order is an iterable of heads; a recomputed order is lazy: computed as it is read. Do not
evaluate an order on the texts it was computed from: see `mha_viz.analysis.reference_texts`.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, TypeAlias, get_args

import numpy as np

from mha_viz.callbacks import OnProgress
from mha_viz.errors import ShapeError
from mha_viz.head import Head
from mha_viz.model import Model
from mha_viz.network import NetworkConfig
from mha_viz.pruning.ablation import Scores, ablate_each_head, ablation_effects
from mha_viz.pruning.importance import (
    confidence,
    gradient_importance,
    random_importance,
    value_importance,
)
from mha_viz.pruning.inputs import Text, all_heads, gate_without, n_losses, one_or_many
from mha_viz.pruning.passes import ZERO, Pass, Replacement

Strategy: TypeAlias = Literal[
    "exact",
    "most important first",
    "gradient",
    "gradient, recomputed",
    "greedy",
    "values",
    "confidence",
    "random",
]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)

Measure: TypeAlias = Callable[[Model, Text, Replacement, OnProgress | None], Scores]
MEASURES: dict[str, Measure] = {  # the measure of each strategy that measures once
    "exact": lambda model, text, replacement, report: ablate_each_head(
        model, text, method=replacement, on_progress=report
    ),
    "gradient": lambda model, text, replacement, _: gradient_importance(
        model, text, replacement=replacement
    ),
    "values": lambda model, text, *_: value_importance(model, text),
    "confidence": lambda model, text, *_: confidence(model, text),
}


def removal_order(scores: Scores, *, most_important_first: bool = False) -> list[Head]:
    """The heads by ascending score, so that the least important goes first; NaN is dropped.

    Equal scores keep the order of layers and heads. `most_important_first` reverses the order.
    """
    heads = [Head(int(layer), int(head)) for layer, head in np.argwhere(np.isfinite(scores))]
    return sorted(heads, key=lambda head: -scores[head] if most_important_first else scores[head])


def order(
    model: Model,
    texts: Text | Iterable[Text],
    strategy: Strategy,
    *,
    replacement: Replacement = ZERO,
    seed: int = 0,
    on_progress: OnProgress | None = None,
) -> Iterator[Head]:
    """All heads in the order that a strategy selects on these texts, one at a time.

    Over several texts, every token counts the same, as in `curve`.

    "exact": by the mean of `ablate_each_head`, measured once; "most important first": the same,
    reversed. "gradient": by `gradient_importance`, once; "gradient, recomputed": again after each
    head. "greedy": each time the head whose ablation raises the loss least, measured exactly;
    `greedy_passes` says how many passes that takes. "values" and "confidence": by
    `value_importance` and `confidence`, once. "random": a shuffle by `seed`.

    `on_progress` is called with the fraction done of the next choice; an exception that it raises
    stops the work. Raises ShapeError for an unknown strategy, TextError as `token_ids` does.
    """
    if strategy not in STRATEGIES:
        raise ShapeError(f"strategy = {strategy!r}; expected one of: {'; '.join(STRATEGIES)}.")
    given = one_or_many(texts)
    if strategy == "greedy":
        return _greedy(model, given, replacement, on_progress)
    if strategy == "gradient, recomputed":
        return _gradient_recomputed(model, given, replacement, on_progress)
    return _once(model, given, strategy, replacement, seed, on_progress)


def greedy_passes(config: NetworkConfig, n_texts: int = 1) -> int:
    """How many forward passes "greedy" takes: N + (N - 1) + … + 1 per text, for N heads.

    A pass starts at the layer of its head, so it costs about half of a full pass.
    """
    n = len(all_heads(config))
    return n_texts * n * (n + 1) // 2


def _once(
    model: Model,
    texts: list[Text],
    strategy: Strategy,
    replacement: Replacement,
    seed: int,
    on_progress: OnProgress | None,
) -> Iterator[Head]:
    if strategy == "random":
        scores = random_importance(model.config, seed)
    else:
        measure = MEASURES["exact" if strategy == "most important first" else strategy]
        by_text = [
            measure(model, text, replacement, _part(on_progress, n, len(texts)))
            for n, text in enumerate(texts)
        ]
        scores = np.average(by_text, axis=0, weights=n_losses(model, texts))
    yield from removal_order(scores, most_important_first=strategy == "most important first")


def _greedy(
    model: Model, texts: list[Text], replacement: Replacement, on_progress: OnProgress | None
) -> Iterator[Head]:
    passes = [Pass.of(model, text, replacement=replacement) for text in texts]
    removed: list[Head] = []
    while len(removed) < len(all_heads(model.config)):
        by_text = [
            ablation_effects(one, on_progress=_part(on_progress, n, len(passes)))
            for n, one in enumerate(passes)
        ]
        weights = [one.ids.shape[1] - 1 for one in passes]
        removed.append(removal_order(np.average(by_text, axis=0, weights=weights))[0])
        passes = [one.without(removed, replacement) for one in passes]
        yield removed[-1]


def _gradient_recomputed(
    model: Model, texts: list[Text], replacement: Replacement, on_progress: OnProgress | None
) -> Iterator[Head]:
    removed: list[Head] = []
    while len(removed) < len(all_heads(model.config)):
        gate = gate_without(model.config, removed)
        scores = gradient_importance(
            model, texts, gate=gate, replacement=replacement, on_progress=on_progress
        )
        removed.append(removal_order(scores)[0])
        yield removed[-1]


def _part(on_progress: OnProgress | None, n: int, of: int) -> OnProgress | None:
    """A callback for part n of several, which reports the progress of all."""
    if on_progress is None:
        return None
    return lambda share: on_progress((n + share) / of)
