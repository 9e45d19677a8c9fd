"""Head profiles: all measures of every head, with intervals, as a table.

Repetition measures (induction, prefix matching, duplicate token) use repeated random tokens, once
per seed (`repeated`); the others use the text. Texts are traced one at a time, without padding.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from mha_viz.errors import ShapeError, TextError
from mha_viz.heads import patterns
from mha_viz.heads.interval import bounded_interval, interval
from mha_viz.heads.measures import MEASURES, ON_RANDOM_TOKENS
from mha_viz.heads.patterns import Numbers
from mha_viz.heads.repeated import FOUR_TIMES, TWICE, repeated_tokens
from mha_viz.trace import Array, Trace

if TYPE_CHECKING:
    import pandas as pd

    from mha_viz.model import Model

Scores: TypeAlias = dict[str, Numbers]  # measure -> [L, H]
OnStep: TypeAlias = Callable[[int, int], None]  # called with (steps done, total steps)


@dataclass(frozen=True, slots=True, eq=False)
class PartialProfile:
    """Head profiles after `done` of `total` texts: means over these texts, with intervals.

    `n_truncated` of these texts had more than n_positions tokens and were cut at the end.
    `n_measured` is, for each measure on text, how many of these texts gave any head a value.
    """

    done: int
    total: int
    frame: "pd.DataFrame" = field(repr=False)
    n_truncated: int = 0
    n_measured: Mapping[str, int] = field(default_factory=dict, repr=False)


def measure(
    model: "Model",
    text: str | Trace | None = None,
    *,
    seeds: int = 5,
    on_step: OnStep | None = None,
) -> "pd.DataFrame":
    """One row per head: layer, head, and for each of `MEASURES` name, name_low and name_high.

    name_low and name_high bound the 95% interval over the seeds. They are NaN where there is only
    one measurement: with one seed, and for measures on the text. Without a text, all measures use
    random tokens. Pruned heads are NaN. A text of more than n_positions tokens is cut at its end; a
    trace is used as it is.

    `on_step` is called with the steps done and the total; an exception that it raises stops the
    work. Raises TextError for a text that cannot be traced, ShapeError for `seeds` below 1.
    """
    _check_seeds(seeds)
    L = model.config.n_layers
    tick = _Counter(on_step, L * (2 * seeds + (text is not None))).tick
    # The text comes first, so that an error in it is raised before anything is computed.
    trace = model.trace(text) if isinstance(text, str) else text
    texts = [] if trace is None else [text_scores(trace, tick)]
    repeats = []
    for seed in range(seeds):
        twice, scores = _on_random_tokens(model, seed, tick)
        repeats.append(scores)
        if text is None:
            texts.append(text_scores(twice))
    return as_frame(texts, repeats)


def measure_texts(
    model: "Model",
    texts: Iterable[str],
    *,
    seeds: int = 5,
    on_layer: Callable[[], None] | None = None,
) -> Iterator[PartialProfile]:
    """Head profiles after each text, over all texts so far. Stop when they are precise enough.

    Every text has the same weight, whatever its length. Intervals are over texts for measures on
    text, and over seeds for the others. A text does not count for a measure that is NaN on it.
    Texts of more than n_positions tokens are cut at the end and counted in `n_truncated`.
    `on_layer` is called after each layer that was run or measured; an exception that it raises
    stops the work. Raises TextError for an empty list and for a text that cannot be traced,
    ShapeError for `seeds` below 1.
    """
    _check_seeds(seeds)
    given = list(texts)
    if not given:
        raise TextError("There is no text. Give at least one.")
    repeats: list[Scores] = []
    scores: list[Scores] = []
    n_truncated = 0
    for text in given:
        trace = model.trace(text, on_layer=on_layer and (lambda _: on_layer()))
        n_truncated += trace.left_out > 0
        scores.append(text_scores(trace, on_layer))
        repeats = repeats or [_on_random_tokens(model, seed, on_layer)[1] for seed in range(seeds)]
        n_measured = {
            name: sum(bool(np.isfinite(of_text[name]).any()) for of_text in scores)
            for name in scores[0]
        }
        frame = as_frame(scores, repeats)
        yield PartialProfile(len(scores), len(given), frame, n_truncated, n_measured)


def text_scores(trace: Trace, on_layer: Callable[[], None] | None = None) -> Scores:
    """The measures of every head of a trace, `[L, H]` each, except those in `ON_RANDOM_TOKENS`.

    Special tokens are excluded as `MEASURES` describes. Only one pattern is in memory at a time.
    """
    queries = trace.text_queries
    rarity = np.array(trace.token_ids)

    def measures(pattern: Array) -> dict[str, float]:
        largest = patterns.targets(pattern, queries)
        return {
            "previous_token": patterns.previous_token(pattern, queries),
            "first_token": patterns.first_token(pattern, queries),
            "self": patterns.itself(pattern, queries),
            "entropy": patterns.entropy(pattern, queries),
            "distance": patterns.distance(pattern, queries),
            "confidence": patterns.confidence(pattern, queries, keys=queries),
            "positional": patterns.positional(largest),
            "rare_token": patterns.rare_token(largest, rarity),
            "syntactic_by_offset": patterns.syntactic_by_offset(largest),
        }

    return _each_head(trace, measures, on_layer)


def as_frame(texts: list[Scores], repeats: list[Scores]) -> "pd.DataFrame":
    """The table of `measure`, from scores on texts and scores on random tokens."""
    import pandas as pd  # here, because importing it takes a third of a second

    L, H = repeats[0][ON_RANDOM_TOKENS[0]].shape
    layer, head = (axis.ravel() for axis in np.indices((L, H)))
    columns: dict[str, Numbers] = {}
    for name in MEASURES:
        source = repeats if name in ON_RANDOM_TOKENS else texts
        columns |= with_interval(name, np.stack([scores[name] for scores in source]))
    return pd.DataFrame({"layer": layer, "head": head, **columns})


def with_interval(name: str, values: Numbers) -> Scores:
    """Three columns `[L * H]` from measurements `[n, L, H]`: name, name_low and name_high."""
    bounded = np.isfinite(MEASURES[name].range).all()
    parts = (bounded_interval if bounded else interval)(values)
    mean, low, high = (part.ravel() for part in parts)
    return {name: mean, f"{name}_low": low, f"{name}_high": high}


def _on_random_tokens(
    model: "Model", seed: int, on_layer: Callable[[], None] | None = None
) -> tuple[Trace, Scores]:
    """The trace of the tokens written twice, and the measures in `ON_RANDOM_TOKENS`."""
    twice = repeated_tokens(model, *TWICE, seed)
    four_times = repeated_tokens(model, *FOUR_TIMES, seed)

    def on_twice(pattern: Array) -> dict[str, float]:
        return {
            "duplicate_token": patterns.duplicate_token(pattern, twice.period),
            "induction": patterns.induction(pattern, twice.period),
        }

    def on_four_times(pattern: Array) -> dict[str, float]:
        return {"prefix_matching": patterns.prefix_matching(pattern, four_times.ids)}

    trace = model.trace_ids(twice.ids)
    scores = _each_head(trace, on_twice, on_layer)
    scores |= _each_head(model.trace_ids(four_times.ids), on_four_times, on_layer)
    return trace, scores


def _each_head(
    trace: Trace,
    measures: Callable[[Array], dict[str, float]],
    on_layer: Callable[[], None] | None,
) -> Scores:
    scores: Scores = {}
    for layer in range(trace.n_layers):
        for head in range(trace.n_heads):
            for name, value in measures(trace.pattern(layer, head)).items():
                empty = np.full((trace.n_layers, trace.n_heads), np.nan)
                scores.setdefault(name, empty)[layer, head] = value
        if on_layer is not None:
            on_layer()
    return scores


class _Counter:
    """Counts steps and reports them."""

    def __init__(self, on_step: OnStep | None, total: int) -> None:
        self.on_step, self.total, self.done = on_step, total, 0

    def tick(self) -> None:
        self.done += 1
        if self.on_step is not None:
            self.on_step(self.done, self.total)


def _check_seeds(seeds: int) -> None:
    if seeds < 1:
        raise ShapeError(f"seeds = {seeds}; random tokens need at least one seed.")
