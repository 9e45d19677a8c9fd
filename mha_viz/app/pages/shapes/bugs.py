"""The Bugs part of the Shapes page: one bug in every layer, and what it does to the model."""

from dataclasses import dataclass

import numpy as np
import streamlit as st
import torch

from mha_viz.app.messages import escaped, notice
from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.caption import caption, model_name
from mha_viz.app.widgets.chart import chart
from mha_viz.app.widgets.choices import segmented_control
from mha_viz.app.widgets.download_buttons import download_matrix
from mha_viz.app.widgets.selection import n_first_tokens, selected_index
from mha_viz.app.work.progress import Reporter, ResultSlots, wait_for
from mha_viz.figures.predictions import compare_predictions
from mha_viz.figures.values import matrix_heatmap
from mha_viz.lessons.bugs import BUGS, divergence, run_with_bug
from mha_viz.trace import Array

MOST_TOKENS = 256
TOP = 5  # next tokens of each run
NAMES = ("correct", "with the bug")


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """The patterns of one layer and the next-token prediction, without the bug and with it."""

    correct_patterns: Array  # [H, T, T]
    patterns: Array
    token_ids: list[int]  # the most likely next tokens of both runs
    correct_probabilities: list[float]
    probabilities: list[float]
    last_divergence: float  # KL in nats at the last position
    mean_divergence: float  # over all positions


_comparisons = ResultSlots[Comparison](8)


def show(view: View) -> None:
    """The wrong line, and what it changes in the pattern and in the prediction."""
    bug: str = segmented_control("Bug", list(BUGS), next(iter(BUGS)), "mistake", show_label=False)
    index = selected_index(view)
    if index is None:
        return
    if bug == "no scale" and view.model.config.scale(view.layer) == 1:
        notice("This model does not scale its scores, so this bug changes nothing.")
    T = n_first_tokens(view, MOST_TOKENS)
    comparison = _compare(view, T, bug)
    if comparison is None:
        return
    labels = [view.model.read([token_id])[0].label for token_id in comparison.token_ids]
    _summary(view, comparison, labels)
    _lines(bug)
    above_diagonal = ~np.tri(T, dtype=bool)
    correct = np.where(above_diagonal, np.nan, comparison.correct_patterns[index])
    wrong = comparison.patterns[index]
    if bug != "no mask":
        wrong = np.where(above_diagonal, np.nan, wrong)
    left, middle, right = st.columns([4, 4, 3], gap="small")
    with left:
        _pattern(view, "Correct", correct)
    with middle:
        _pattern(view, "With the bug", wrong)
    with right:
        _next_token(view, comparison, labels)
    tokens = view.trace.tokens[:T]
    download_matrix("pattern_with_bug.csv", comparison.patterns[index], rows=tokens)


def _summary(view: View, comparison: Comparison, labels: list[str]) -> None:
    before = int(np.argmax(comparison.correct_probabilities))
    after = int(np.argmax(comparison.probabilities))
    if before == after:
        top = (
            f"The top next token is still {labels[after]}, with probability "
            f"{comparison.probabilities[after]:.2f} instead of "
            f"{comparison.correct_probabilities[after]:.2f}."
        )
    else:
        top = f"The top next token changes from {labels[before]} to {labels[after]}."
    explained.html(
        f'<p class="broken">KL divergence from {escaped(model_name(view))}: '
        f"{comparison.last_divergence:.2f} nats at the last position, "
        f"{comparison.mean_divergence:.2f} on average. {escaped(top)}</p>"
    )


def _lines(bug: str) -> None:
    text, code = st.columns([2, 3], gap="medium", vertical_alignment="center")
    correct, wrong = BUGS[bug].correct, BUGS[bug].wrong or "# missing"
    with text:
        explained.paragraph(BUGS[bug].effect)
    code.code(f"- {correct}\n+ {wrong}", language="diff", wrap_lines=True)


def _pattern(view: View, title: str, pattern: Array) -> None:
    caption(title, f"{view.at.label}. Each row shows what one token looks at.")
    figure = matrix_heatmap(
        pattern,
        view.theme,
        rows="from",
        columns="to",
        weights=True,
        both=True,
        tokens=view.trace.tokens[: len(pattern)],
        most_labels=12 if view.stage else 18,
        sizes=view.sizes,
    )
    alt = f"{title}: the pattern of {view.at.label} over {len(pattern)} tokens."
    chart(figure, key=f"pattern {title}", height=400, alt=alt)


def _next_token(view: View, comparison: Comparison, labels: list[str]) -> None:
    caption("Next token", f"Probabilities of the top {TOP} tokens of each run.")
    before, after = comparison.correct_probabilities, comparison.probabilities
    figure = compare_predictions(labels, before, after, view.theme, names=NAMES, sizes=view.sizes)
    rows = list(zip(comparison.token_ids, labels, before, after, strict=True))
    chart(
        figure,
        key="next",
        height=400,
        table=lambda: (["id", "token", *NAMES], [list(row) for row in rows]),
        alt="; ".join(f"{token} {p:.2f}, with the bug {q:.2f}" for _, token, p, q in rows),
    )


def _compare(view: View, T: int, bug: str) -> Comparison | None:
    network, layer, L = view.model.network, view.layer, view.trace.n_layers
    ids = torch.tensor([view.trace.token_ids[:T]], device=view.model.device)

    def work(report: Reporter) -> Comparison:
        correct = run_with_bug(network, ids, None, layer, on_layer=lambda n: report(n / L / 2))
        wrong = run_with_bug(network, ids, bug, layer, on_layer=lambda n: report((1 + n / L) / 2))
        divergences = divergence(correct.logits, wrong.logits)
        p, q = (run.logits[-1].float().softmax(-1) for run in (correct, wrong))
        top = {token_id for run in (p, q) for token_id in run.topk(TOP).indices.tolist()}
        token_ids = sorted(top, key=lambda token_id: -float(p[token_id]))
        return Comparison(
            correct_patterns=correct.pattern.float().cpu().numpy(),
            patterns=wrong.pattern.float().cpu().numpy(),
            token_ids=token_ids,
            correct_probabilities=p[token_ids].tolist(),
            probabilities=q[token_ids].tolist(),
            last_divergence=float(divergences[-1]),
            mean_divergence=float(divergences.mean()),
        )

    slot = _comparisons(view.trace_key, layer, T, bug)
    return wait_for(slot, "Running the model with and without the bug", work, lane="bug")
