"""The head passport: every measure of every head, with its interval, as a table.

What a text tells is measured on the text; what only repetition tells, on random tokens that are
written twice (`repeated`), once for each seed. Texts are traced one by one, never side by side
with padding between them, so no text is in another's numbers.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from mha_viz.errors import ShapeError, TextError
from mha_viz.heads import patterns
from mha_viz.heads.interval import interval
from mha_viz.heads.measures import MEASURES, ON_RANDOM_TOKENS
from mha_viz.heads.patterns import Numbers
from mha_viz.heads.repeated import FOUR_TIMES, TWICE, repeated_tokens
from mha_viz.trace import Array, Trace

if TYPE_CHECKING:
    import pandas as pd

    from mha_viz.model import Model

Scores: TypeAlias = dict[str, Numbers]  # measure -> [L, H]
OnStep: TypeAlias = Callable[[int, int], None]  # (done, all), a step a layer; may raise, to stop


@dataclass(frozen=True, slots=True, eq=False)
class PartialProfile:
    """The passport over the texts so far: `done` of `total`; means over texts, with intervals.

    `cut` of those done have more than n_positions tokens: they were cut at their end. `said` is on
    how many of those done each measure on text has a value for any head.
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
    """A row a head: layer, head, and of each of `MEASURES` name, name_low and name_high.

    The last two are the ends of a 95 % interval over the seeds, NaN where there is only one
    measurement: for one seed, and for what is measured on the one text. Without a text, all is
    measured on random tokens. Heads that were taken out of the model are NaN throughout. A text of
    more than n_positions tokens is cut at its end; a trace that was made before is taken as it is.

    `on_step` is told how many of all steps are done. Raises TextError for a text that cannot be
    traced, ShapeError for fewer than one seed.
    """
    _check_seeds(seeds)
    L = model.config.n_layers
    tick = _Counter(on_step, L * (2 * seeds + (text is not None))).tick
    # The text first: what is wrong with it should be told before anything is computed.
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
    """The passport after each text, over all texts so far: stop whenever it is enough.

    Each text counts the same, however long; intervals are over texts for what is measured on them
    and over seeds for the rest. A text says nothing about a measure that is NaN on it. Texts of
    more than n_positions tokens are cut at their end, and counted in the batch. `on_layer` is
    called after each layer that was run or measured, and may raise to stop. Raises TextError
    for no text, and at a text that cannot be traced; ShapeError for fewer than one seed.
    """
    _check_seeds(seeds)
    given = list(texts)
    if not given:
        raise TextError("There is no text. Give one a line.")
    repeats: list[Scores] = []
    found: list[Scores] = []
    cut = 0
    for text in given:
        trace = model.trace(text, on_layer=on_layer and (lambda _: on_layer()))
        cut += trace.left_out > 0
        found.append(text_scores(trace, on_layer))
        repeats = repeats or [_on_random_tokens(model, seed, on_layer)[1] for seed in range(seeds)]
        said = {
            name: sum(bool(np.isfinite(scores[name]).any()) for scores in found)
            for name in found[0]
        }
        yield PartialProfile(len(found), len(given), as_frame(found, repeats), cut, said)


def text_scores(trace: Trace, on_layer: Callable[[], None] | None = None) -> Scores:
    """Of each head of a trace, `[L, H]`, all measures but those `ON_RANDOM_TOKENS`.

    Special tokens are left out; see `MEASURES` for how. Never holds more than one pattern.
    """
    ordinary = patterns.text_positions(trace.details)
    words = None if len(ordinary) == trace.n_tokens else ordinary
    rarity = np.array(trace.token_ids)

    def measures(pattern: Array) -> dict[str, float]:
        found = patterns.targets(pattern, words)
        return {
            "previous_token": patterns.previous_token(pattern, words),
            "first_token": patterns.first_token(pattern, words),
            "self": patterns.itself(pattern, words),
            "entropy": patterns.entropy(pattern, words),
            "distance": patterns.distance(pattern, words),
            "confidence": patterns.confidence(pattern, words, words),
            "positional": patterns.positional(found),
            "rare_token": patterns.rare_token(found, rarity),
            "syntactic_by_offset": patterns.syntactic_by_offset(found),
        }

    return _each_head(trace, measures, on_layer)


def as_frame(texts: list[Scores], repeats: list[Scores]) -> "pd.DataFrame":
    """The table of `measure`, from scores on texts and scores on random tokens."""
    import pandas as pd  # here, since it takes a third of a second that no other view needs

    L, H = repeats[0][ON_RANDOM_TOKENS[0]].shape
    layer, head = (axis.ravel() for axis in np.indices((L, H)))
    columns: dict[str, Numbers] = {}
    for name in MEASURES:
        source = repeats if name in ON_RANDOM_TOKENS else texts
        columns |= with_interval(name, np.stack([scores[name] for scores in source]))
    return pd.DataFrame({"layer": layer, "head": head, **columns})


def with_interval(name: str, values: Numbers) -> Scores:
    """Three columns `[L * H]` from measurements `[n, L, H]`: name, name_low and name_high."""
    mean, low, high = (part.ravel() for part in interval(values))
    return {name: mean, f"{name}_low": low, f"{name}_high": high}


def _on_random_tokens(
    model: "Model", seed: int, on_layer: Callable[[], None] | None = None
) -> tuple[Trace, Scores]:
    """The trace of the tokens written twice, and the scores `ON_RANDOM_TOKENS`."""
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
    """Counts steps, and tells who asked."""

    def __init__(self, on_step: OnStep | None, total: int) -> None:
        self.on_step, self.total, self.done = on_step, total, 0

    def tick(self) -> None:
        self.done += 1
        if self.on_step is not None:
            self.on_step(self.done, self.total)


def _check_seeds(seeds: int) -> None:
    if seeds < 1:
        raise ShapeError(f"seeds = {seeds}; random tokens are drawn with one seed at least.")
