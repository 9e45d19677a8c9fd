"""The Importance part: what each head is worth, exactly and by estimates, and how these agree."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import streamlit as st

from mha_viz import pruning
from mha_viz.app.messages import problem
from mha_viz.app.pages.pruning.ablation_type import Ablation
from mha_viz.app.view import View
from mha_viz.app.widgets import explained, head_board
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.chart import chart
from mha_viz.app.widgets.choices import segmented_control
from mha_viz.app.widgets.download_buttons import download_table
from mha_viz.app.widgets.tables import table
from mha_viz.app.work.progress import Reporter, results
from mha_viz.errors import MhaVizError
from mha_viz.export import head_table
from mha_viz.figures.scatter import rank_scatter
from mha_viz.pruning import Estimate, Scores, make_replacement

EXPLANATIONS = {
    "exact": "Exact ablation: for each head alone, the loss without it minus the loss with it, in "
    "nats per token.",
    "gradient": "Estimate: |∂L/∂g| at g = 1, where the gate g scales the head's output. The "
    "absolute value is taken for each text, then averaged (Michel et al. 2019). It takes "
    "one forward and one backward pass per text.",
    "values": "Estimate: for each query, the sum over keys of weight × ‖f(x)‖, averaged over "
    "queries (Kobayashi et al. 2020).",
    "confidence": "Estimate: the largest weight of each row, averaged over rows (Voita et al. "
    "2019).",
}
SLOW = 1e12  # multiply-adds of exact ablation that a user has to ask for
SOURCES = ["this text", "reference text"]


@dataclass(frozen=True, slots=True)
class Choice:
    """What is measured, on what, and by which type of ablation."""

    measure: str
    source: str
    ablation: Ablation

    def chunks(self, view: View) -> list[list[int]]:
        """The token ids that it is measured on. Raises TextError if there are too few."""
        length = view.model.config.n_positions
        if self.source == SOURCES[0]:
            return pruning.chunks(view.model, view.trace.token_ids, length)
        return pruning.chunks(view.model, self.ablation.reference.selection, length)

    def name(self, view: View) -> str:
        """A name for the results, of everything that they depend on."""
        reference = self.ablation.reference.key
        text = view.trace_key if self.source == SOURCES[0] else reference
        method: str = self.ablation.method if self.measure == "exact" else ""
        if method not in ("", "zero"):
            method = f"{method} {reference}"  # which the replacement values come from
        return f"importance {self.measure} {method} {text} {view.about.weights_hash}"


def show(view: View, ablation: Ablation) -> Scores | None:
    """The scores of all heads and how measures agree; returns the scores for the board."""
    choice = select(ablation)
    other = choice.measure if choice.measure != "exact" else "gradient"
    exact = _scores(view, replace(choice, measure="exact"))
    estimate = _scores(view, replace(choice, measure=other))
    selected = exact if choice.measure == "exact" else estimate
    if selected is None:
        return None
    _ranking(choice, selected)
    if exact is not None and estimate is not None:
        _agreement(view, choice, exact, estimate, other)
    return selected.mean


def select(ablation: Ablation) -> Choice:
    """The selected measure and texts."""
    with st.container(horizontal=True, vertical_alignment="center"):
        measures = list(EXPLANATIONS)
        measure = segmented_control("Measure", measures, "exact", "score", show_label=False)
        source = segmented_control("Text", SOURCES, SOURCES[0], "score_on", show_label=False)
    explained.note(EXPLANATIONS[measure])
    return Choice(measure, source, ablation)


def _scores(view: View, choice: Choice) -> Estimate | None:
    """The scores over the texts that are done; None if there are none yet."""
    try:
        chunks = choice.chunks(view)
    except MhaVizError as error:
        problem(str(error))
        return None
    by_text, _ = results(
        choice.name(view),
        lambda report: _measure(view, choice, chunks, report),
        total=len(chunks),
        what=f"texts, {choice.measure}",
        cost=_cost(view, choice, chunks),
        lane=f"importance {choice.measure}",
    )
    return pruning.estimate(by_text) if by_text else None


def _measure(
    view: View, choice: Choice, chunks: list[list[int]], report: Reporter
) -> Iterator[Scores]:
    model, ablation = view.model, choice.ablation
    for ids in chunks:
        if choice.measure == "exact":
            texts = ablation.reference.selection
            replacement = make_replacement(model, ablation.method, len(ids), texts)
            yield pruning.ablate_each_head(model, ids, method=replacement, on_progress=report)
        elif choice.measure == "gradient":
            yield pruning.gradient_importance(model, ids)
        elif choice.measure == "values":
            yield pruning.value_importance(model, ids)
        else:
            yield pruning.confidence(model, ids)


def _cost(view: View, choice: Choice, chunks: list[list[int]]) -> str:
    """How much work a slow measurement takes; "" if it is quick."""
    n_heads = len(pruning.all_heads(view.model.config))
    multiply_adds = sum(map(len, chunks)) * n_heads * view.about.n_parameters
    if choice.measure != "exact" or multiply_adds < SLOW:
        return ""
    return (
        f"Exact importance runs the model once for each of {n_heads} heads and {len(chunks)} texts."
    )


def _ranking(choice: Choice, scores: Estimate) -> None:
    """All heads by score, with intervals, and a button that ablates the least important."""
    order = pruning.removal_order(scores.mean)
    interval = f", mean of {scores.n} texts with its 95% interval" if scores.n > 1 else ""
    caption(
        "Heads by importance",
        f"Most important first; {choice.measure}, on {choice.source}{interval}.",
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        n = explained.number_input(
            "Number of heads",
            1,
            len(order),
            min(3, len(order)),
            key="least",
            bind="query-params",
            width=140,
        )
        least = tuple(order[: int(n)])
        st.button(f"Ablate the {n} least important", on_click=head_board.ablate, args=(least,))
    header = ["head", "score", "low", "high"]
    means, lows, highs = scores.mean, scores.low, scores.high
    rows = [
        [head.label, float(means[head]), float(lows[head]), float(highs[head])]
        for head in reversed(order)
    ]
    if scores.n < 2:
        rows, header = [row[:2] for row in rows], header[:2]
    table(header, rows, height=260)
    download_table("importance.csv", header, rows)


def _agreement(view: View, choice: Choice, exact: Estimate, estimate: Estimate, name: str) -> None:
    """An estimate against exact ablation, and their rank correlation."""
    correlation = pruning.rank_correlation(exact.mean, estimate.mean)
    result = (
        f"Rank correlation (Spearman): {correlation:.2f}."
        if np.isfinite(correlation)
        else "There are too few heads for a correlation."
    )
    caption(
        f"Exact ablation and {name}", f"Each dot is a head, measured on {choice.source}. {result}"
    )
    figure = rank_scatter(
        exact.mean,
        estimate.mean,
        view.theme,
        selected=(view.layer, view.head),
        names=("exact: increase of the loss (nats)", f"{name}: estimate"),
        sizes=view.sizes,
    )
    chart(
        figure,
        key="agreement",
        height=340,
        table=lambda: head_table(["exact", name], exact.mean, estimate.mean),
        alt=f"Each head's {name} estimate against exact ablation. {result}",
    )
