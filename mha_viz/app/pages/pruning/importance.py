"""The Importance part: what each head is worth, exactly and by estimates, and how these agree."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import streamlit as st

from mha_viz import pruning
from mha_viz.analysis.reference_texts import selection_texts as selection_texts  # for scripts
from mha_viz.app.pages.pruning.ablation_type import Ablation
from mha_viz.app.pages.pruning.importance_runs import SOURCES, Choice, Importance, importance
from mha_viz.app.view import View
from mha_viz.app.widgets import explained, head_board
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.chart import chart
from mha_viz.app.widgets.choices import segmented_control
from mha_viz.app.widgets.download_buttons import download_table
from mha_viz.app.widgets.recipes import recipe
from mha_viz.app.widgets.tables import table
from mha_viz.export import Drawn, Given, heads_data
from mha_viz.figures.scatter import rank_scatter
from mha_viz.figures.theme import TextSizes, Theme
from mha_viz.model import Model
from mha_viz.pruning import Estimate, Method, Scores
from mha_viz.pruning import numbered_chunks as numbered_chunks  # for scripts

EXPLANATIONS = {
    "exact": "Exact ablation: for each head alone, the loss without it minus the loss with it, in "
    "nats per token.",
    "gradient": "Estimate: |∂L/∂g| at g = 1, where the gate g scales the head's output. The "
    "absolute value is taken for each text, then averaged (Michel et al. 2019). It takes "
    "one forward and one backward pass per text.",
    "values": "Estimate: for each query, the sum over keys of weight × ‖f(x)‖, averaged over "
    "queries that are not special tokens (after Kobayashi et al. 2020).",
    "confidence": "Estimate: the largest weight of each row, averaged over rows, without special "
    "tokens (Voita et al. 2019).",
}


def show(view: View, ablation: Ablation) -> Scores | None:
    """The scores of all heads and how measures agree; returns the scores for the board."""
    choice = select(ablation)
    other = choice.measure if choice.measure != "exact" else "gradient"
    exact = importance(view, replace(choice, measure="exact"))
    estimate = importance(view, replace(choice, measure=other))
    selected = exact if choice.measure == "exact" else estimate
    if selected is None:
        return None
    _ranking(choice, selected)
    if exact is not None and estimate is not None:
        _agreement(view, choice, exact.size, estimate.size, other)
    return selected.signed.mean


def select(ablation: Ablation) -> Choice:
    """The selected measure and texts."""
    with st.container(horizontal=True, vertical_alignment="center"):
        measures = list(EXPLANATIONS)
        measure = segmented_control("Measure", measures, "exact", "score", show_label=False)
        source = segmented_control("Text", SOURCES, SOURCES[0], "score_on", show_label=False)
    explained.note(EXPLANATIONS[measure])
    return Choice(measure, source, ablation)


def _ranking(choice: Choice, found: Importance) -> None:
    """All heads by score, with intervals, and a button that ablates the least important."""
    scores = found.signed
    order = pruning.removal_order(scores.mean)
    caption(
        "Heads by importance",
        f"Most important first; {choice.measure}, on {choice.source} ({found.over}).",
        also="95% interval",
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
    """An estimate against the magnitude of the exact effect, and their rank correlation.

    The estimates say how much a head matters, not whether it helps, so the sign does not count.
    """
    correlation = pruning.rank_correlation(exact.mean, estimate.mean)
    result = (
        f"Rank correlation (Spearman): {correlation:.2f}."
        if np.isfinite(correlation)
        else "There are too few heads for a correlation."
    )
    caption(
        f"Exact ablation and {name}",
        f"Each dot is a head, measured on {choice.source}: the magnitude of the exact "
        f"effect against the estimate. {result}",
    )
    texts = "[trace.token_ids]" if choice.on_this_text else "selection_texts()"
    code = "_magnitudes(model, chunks, {!r}, method, selection_texts())"
    reads_reference = not choice.on_this_text or choice.ablation.method != "zero"
    drawn = recipe(
        view,
        _draw_agreement,
        method=choice.ablation.method,
        chunks=Given(None, f"numbered_chunks(model, {texts}, model.config.n_positions)"),
        exact=Given(exact.mean, code.format("exact")),
        estimate=Given(estimate.mean, code.format(name)),
        name=name,
        cannot=choice.ablation.reference.cannot if reads_reference else "",
    )
    chart(
        drawn,
        key="agreement",
        name=f"Exact ablation and {name}",
        height=340,
        alt=f"Each head's {name} estimate against the magnitude of its exact effect. {result}",
    )


def _draw_agreement(
    exact: Scores,
    estimate: Scores,
    name: str,
    layer: int,
    head: int,
    theme: Theme,
    sizes: TextSizes,
) -> Drawn:
    figure = rank_scatter(
        exact,
        estimate,
        theme,
        selected=(layer, head),
        names=("exact: magnitude of the change in loss (nats)", f"{name}: estimate"),
        sizes=sizes,
    )
    data = heads_data(magnitude_of_the_exact_effect=exact, **{name: estimate})
    return figure, data


def _magnitudes(
    model: Model,
    chunks: Sequence[tuple[int, list[int]]],
    measure: str,
    method: Method,
    selection: Sequence[str],
) -> Scores:
    """`[L, H]`: the mean magnitude of each head's score over chunks of text; scripts call it."""
    estimates = {
        "gradient": pruning.gradient_importance,
        "values": pruning.value_importance,
        "confidence": pruning.confidence,
    }
    magnitudes = []
    for _, ids in chunks:
        if measure == "exact":
            draws = pruning.draws(model, method, len(ids), selection)
            effects = [pruning.ablate_each_head(model, ids, method=draw) for draw in draws]
            magnitudes.append(np.abs(np.mean(effects, axis=0)))
        else:
            magnitudes.append(np.abs(estimates[measure](model, ids)))
    weights = [len(ids) - 1 for _, ids in chunks]
    return pruning.estimate(magnitudes, weights=weights, texts=[n for n, _ in chunks]).mean
