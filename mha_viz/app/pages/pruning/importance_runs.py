"""Measuring the importance of all heads, chunk by chunk, and the estimates over these chunks."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mha_viz import pruning
from mha_viz.app.messages import problem
from mha_viz.app.pages.pruning.ablation_type import Ablation
from mha_viz.app.view import View
from mha_viz.app.work.progress import Reporter, results
from mha_viz.callbacks import OnProgress
from mha_viz.errors import MhaVizError
from mha_viz.pruning import Estimate, Scores

SLOW = 1e12  # multiply-adds from which exact ablation starts only after a click
SOURCES = ["this text", "reference text"]


@dataclass(frozen=True, slots=True)
class Choice:
    """What is measured, on what, and by which type of ablation."""

    measure: str
    source: str
    ablation: Ablation

    @property
    def on_this_text(self) -> bool:
        """Whether it is measured on the user's text."""
        return self.source == SOURCES[0]

    def chunks(self, view: View) -> list[tuple[int, list[int]]]:
        """The token ids that it is measured on, each chunk after the number of its passage.

        Raises TextError if there are too few.
        """
        texts = [view.trace.token_ids] if self.on_this_text else self.ablation.reference.selection
        return pruning.numbered_chunks(view.model, texts, view.model.config.n_positions)

    def name(self, view: View) -> str:
        """A name for the results that includes everything they depend on."""
        reference = self.ablation.reference.key
        text = view.trace_key if self.on_this_text else reference
        method: str = self.ablation.method if self.measure == "exact" else ""
        if method not in ("", "zero"):
            method = f"{method} {reference}"  # which the replacement values come from
        return f"importance {self.measure} {method} {text} {view.model.key}"


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """The scores of one chunk, in the units that its interval is over."""

    passage: int
    units: list[Scores]  # [L, H] each
    weights: list[int]  # how many tokens of each unit have a loss

    @property
    def mean(self) -> Scores:
        """`[L, H]`: the score of the chunk."""
        mean: Scores = np.average(self.units, axis=0, weights=self.weights)
        return mean


@dataclass(frozen=True, slots=True, eq=False)
class Importance:
    """The importance of all heads as measured so far, and what the interval is over."""

    signed: Estimate
    size: Estimate  # of the absolute values of each chunk, as the gradient estimates it
    over: str


def importance(view: View, choice: Choice) -> Importance | None:
    """The scores over the chunks that are done; None if there are none yet."""
    try:
        chunks = choice.chunks(view)
    except MhaVizError as error:
        problem(str(error))
        return None
    measured, _ = results(
        choice.name(view),
        lambda report: _measure(view, choice, chunks, report),
        total=len(chunks),
        what=f"chunks, {choice.measure}",
        cost=_cost(view, choice, chunks),
        lane=f"importance {choice.measure}",
    )
    return _estimates(choice, measured) if measured else None


def _estimates(choice: Choice, measured: list[Measured]) -> Importance:
    units = [scores for one in measured for scores in one.units]
    weights = [weight for one in measured for weight in one.weights]
    passages = [one.passage for one in measured for _ in one.units]
    tokens = f"{sum(sum(one.weights) // _repeats(choice, one) for one in measured):,} tokens"
    if choice.on_this_text:
        signed = pruning.estimate(units, weights=weights)
        kind = "draws" if choice.ablation.method == "resample" else "stretches of this text"
        over = f"{tokens}, interval over {signed.n} {kind}" if signed.n > 1 else tokens
    else:
        signed = pruning.estimate(units, weights=weights, texts=passages)
        over = f"{tokens} in {signed.n} passages"
        over += ", interval over passages" if signed.n > 1 else ""
    size = pruning.estimate(
        [np.abs(one.mean) for one in measured],
        weights=[sum(one.weights) for one in measured],
        texts=[one.passage for one in measured],
    )
    return Importance(signed, size, over)


def _repeats(choice: Choice, measured: Measured) -> int:
    """How often each token is among the units: once, or once for each draw."""
    draws = choice.measure == "exact" and choice.ablation.method == "resample"
    return len(measured.units) if draws and choice.on_this_text else 1


def _measure(
    view: View, choice: Choice, chunks: list[tuple[int, list[int]]], report: Reporter
) -> Iterator[Measured]:
    model = view.model
    estimates = {
        "gradient": pruning.gradient_importance,
        "values": pruning.value_importance,
        "confidence": pruning.confidence,
    }
    for passage, ids in chunks:
        if choice.measure == "exact":
            yield _ablate(view, choice, passage, ids, report)
        else:
            yield Measured(passage, [estimates[choice.measure](model, ids)], [len(ids) - 1])


def _ablate(view: View, choice: Choice, passage: int, ids: list[int], report: Reporter) -> Measured:
    """Exact ablation of each head, averaged over draws where replacements are drawn."""
    model, method, n = view.model, choice.ablation.method, len(ids) - 1
    replacements = pruning.draws(model, method, len(ids), choice.ablation.reference.selection)

    def part(done: int) -> OnProgress:
        return lambda share: report((done + share) / len(replacements))

    by_token = [
        pruning.ablate_each_head_by_token(model, ids, method=one, on_progress=part(done))
        for done, one in enumerate(replacements)
    ]
    if not choice.on_this_text:
        return Measured(passage, [np.mean(by_token, axis=0).mean(-1)], [n])
    if len(by_token) > 1:
        return Measured(passage, [effects.mean(-1) for effects in by_token], [n] * len(by_token))
    stretches, weights = pruning.stretches(by_token[0])
    return Measured(passage, stretches, weights)


def _cost(view: View, choice: Choice, chunks: list[tuple[int, list[int]]]) -> str:
    """How much work a slow measurement takes; "" if it is quick."""
    n_heads = len(pruning.all_heads(view.model.config))
    n_tokens = sum(len(ids) for _, ids in chunks)
    multiply_adds = n_tokens * n_heads * view.about.n_parameters
    if choice.measure != "exact" or multiply_adds < SLOW:
        return ""
    return (
        f"Exact importance runs the model once for each of {n_heads} heads and {len(chunks)} "
        "chunks of text."
    )
