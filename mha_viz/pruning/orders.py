"""In which order heads go: chosen once, chosen again after each step, or drawn at random.

An order is an iterable of heads; those that are chosen step by step are computed as they are read.
The texts that choose are not those that measure: see `mha_viz.analysis.reference_texts`.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, TypeAlias, get_args

import numpy as np

from mha_viz.errors import ShapeError
from mha_viz.gpt2 import GPT2Config
from mha_viz.head import Head
from mha_viz.model import Model
from mha_viz.pruning.ablation import Scores, ablate_each_head, ablation_effects
from mha_viz.pruning.importance import (
    confidence,
    gradient_importance,
    random_importance,
    value_importance,
)
from mha_viz.pruning.inputs import Text, all_heads, gate_without, one_or_many
from mha_viz.pruning.passes import ZERO, Pass, Replacement
from mha_viz.pruning.replacements import Progress

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

Measure: TypeAlias = Callable[[Model, Text, Replacement, Progress | None], Scores]
MEASURES: dict[str, Measure] = {  # strategies that look once -> what they look at
    "exact": lambda model, text, replacement, told: ablate_each_head(
        model, text, method=replacement, on_progress=told
    ),
    "gradient": lambda model, text, replacement, told: gradient_importance(
        model, text, replacement=replacement
    ),
    "values": lambda model, text, replacement, told: value_importance(model, text),
    "confidence": lambda model, text, replacement, told: confidence(model, text),
}


def removal_order(scores: Scores, *, most_important_first: bool = False) -> list[Head]:
    """The heads by rising score, so that what matters least goes first; NaN is left out.

    Equal scores keep the order of layers and heads. `most_important_first` reverses it.
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
    on_progress: Progress | None = None,
) -> Iterator[Head]:
    """All heads in the order that a strategy finds on these texts, one at a time.

    "exact": by the mean of `ablate_each_head`, once; "most important first": the same, backwards.
    "gradient": by `gradient_importance`, once; "gradient, recomputed": again after each head.
    "greedy": the head whose removal costs least now, exactly, at the price of `greedy_passes`.
    "values" and "confidence": by those scores, once. "random": a shuffle, by `seed`.

    `on_progress` is told the share of the next choice that is done; an exception that it raises
    passes through. Raises ShapeError for another strategy, TextError as `token_ids` does.
    """
    if strategy not in STRATEGIES:
        raise ShapeError(f"strategy = {strategy!r}; heads go by {', '.join(STRATEGIES)}.")
    given = one_or_many(texts)
    if strategy == "greedy":
        return _greedy(model, given, replacement, on_progress)
    if strategy == "gradient, recomputed":
        return _gradient_recomputed(model, given, replacement, on_progress)
    return _once(model, given, strategy, replacement, seed, on_progress)


def greedy_passes(config: GPT2Config, n_texts: int = 1) -> int:
    """How many forward passes "greedy" asks for: N + (N - 1) + … + 1 a text, for N heads.

    The layers below a head are not run again for it, so one costs about half of a whole pass.
    """
    n = len(all_heads(config))
    return n_texts * n * (n + 1) // 2


def _once(
    model: Model,
    texts: list[Text],
    strategy: Strategy,
    replacement: Replacement,
    seed: int,
    on_progress: Progress | None,
) -> Iterator[Head]:
    if strategy == "random":
        scores = random_importance(model.config, seed)
    else:
        measure = MEASURES["exact" if strategy == "most important first" else strategy]
        found = [
            measure(model, text, replacement, _part(on_progress, n, len(texts)))
            for n, text in enumerate(texts)
        ]
        scores = np.mean(found, axis=0)
    yield from removal_order(scores, most_important_first=strategy == "most important first")


def _greedy(
    model: Model, texts: list[Text], replacement: Replacement, on_progress: Progress | None
) -> Iterator[Head]:
    passes = [Pass.of(model, text, replacement=replacement) for text in texts]
    gone: list[Head] = []
    while len(gone) < len(all_heads(model.config)):
        found = [
            ablation_effects(one, on_progress=_part(on_progress, n, len(passes)))
            for n, one in enumerate(passes)
        ]
        gone.append(removal_order(np.mean(found, axis=0))[0])
        passes = [one.without(gone, replacement) for one in passes]
        yield gone[-1]


def _gradient_recomputed(
    model: Model, texts: list[Text], replacement: Replacement, on_progress: Progress | None
) -> Iterator[Head]:
    gone: list[Head] = []
    while len(gone) < len(all_heads(model.config)):
        gate = gate_without(model.config, gone)
        scores = gradient_importance(
            model, texts, gate=gate, replacement=replacement, on_progress=on_progress
        )
        gone.append(removal_order(scores)[0])
        yield gone[-1]


def _part(on_progress: Progress | None, n: int, of: int) -> Progress | None:
    """What tells the progress of part n as that of the whole."""
    if on_progress is None:
        return None
    return lambda share: on_progress((n + share) / of)
