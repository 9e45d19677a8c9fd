"""The Ablation part: what the ablated heads change on the text and on the reference text."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import streamlit as st

from mha_viz import pruning
from mha_viz.analysis.reference_texts import selection_texts as selection_texts  # for scripts
from mha_viz.app.messages import escaped, notice, problem
from mha_viz.app.pages.pruning.ablation_runs import Effect, ablation_effect
from mha_viz.app.pages.pruning.ablation_type import Ablation
from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.caption import caption, metrics
from mha_viz.app.widgets.chart import chart
from mha_viz.app.widgets.download_buttons import download_table
from mha_viz.app.widgets.head_links import head_button
from mha_viz.app.widgets.recipes import recipe
from mha_viz.errors import MhaVizError
from mha_viz.export import Drawn, Given, rows_data
from mha_viz.figures.predictions import compare_predictions
from mha_viz.figures.theme import TextSizes, Theme
from mha_viz.figures.token_losses import token_losses
from mha_viz.head import Head
from mha_viz.heads.interval import interval
from mha_viz.model import Model
from mha_viz.pruning import ZERO as ZERO  # for scripts
from mha_viz.pruning import Candidate, Estimate, Pass, next_tokens
from mha_viz.pruning import make_replacement as make_replacement  # for scripts
from mha_viz.trace import Trace

N_CHANGED = 5  # heads that are listed
TOP = 10  # next tokens of the full model
NEW = 2  # more tokens, which are in the top only with ablated heads
DOWNLOADED = 50  # next tokens
RUNS = ("full model", "heads ablated")


def show(view: View, ablation: Ablation) -> None:
    """The effect on losses, on the prediction, and on the patterns of other heads."""
    if view.trace.n_tokens < 2:
        st.info(
            "The loss measures how well each next token is predicted, so the text needs at least "
            "two tokens."
        )
        return
    effect = ablation_effect(view, ablation)
    if effect is None:
        return
    _summary(view, ablation, effect)
    given = _given(view, ablation, effect)
    _next_token(view, effect, given)
    _token_losses(view, effect, given)
    _changed_patterns(effect)
    _downloads(view, effect)


def _given(view: View, ablation: Ablation, effect: Effect) -> dict[str, Any]:
    """Both runs on the text, and how scripts make them again."""
    zero = ablation.method == "zero"
    replaced = "make_replacement(model, method, trace.n_tokens, selection_texts())"
    return {
        "method": ablation.method,
        "ablated": ablation.heads,
        "replacement": Given(None, "ZERO" if zero else replaced),
        "full": Given(effect.full.text, "Pass.of(model, trace.token_ids)"),
        "without": Given(effect.ablated.text, "full.without(ablated, replacement)"),
        "cannot": "" if zero else ablation.reference.cannot,
    }


def _summary(view: View, ablation: Ablation, effect: Effect) -> None:
    n_heads = len(pruning.all_heads(view.model.config))
    full, ablated, divergence = effect.full, effect.ablated, effect.divergence
    metrics(
        f"<b>{len(ablation.heads)} of {n_heads} heads ablated</b>",
        f"this text {_loss(ablated.text_loss, effect.text_change)}",
        f"reference text {_loss(ablated.reference_loss, effect.reference_change)}, on "
        f"{full.reference_size}",
        f"KL divergence {divergence[-1]:.3f} nats at the last position, "
        f"{divergence.mean():.3f} on average",
    )
    if effect.draws:
        mean, low, high = interval(np.array(effect.draws))
        explained.note(
            f"This page shows one draw of the resampled values. Over {len(effect.draws)} draws, "
            f"the loss on this text has a mean of {mean:.3f} nats (95% interval {low:.3f} to "
            f"{high:.3f}) and ranges from {min(effect.draws):.3f} to {max(effect.draws):.3f}."
        )


def _loss(loss: float, change: Estimate) -> str:
    """The loss with its change, half the width of the change's interval, and the perplexity."""
    half = f", 95% interval ±{change.half_width:.3f}" if change.half_width > 0 else ""
    perplexity = f"{math.exp(loss):,.1f}" if loss < 20 else "over 4.8 × 10⁸"
    signed = f"{change.mean:+.3f}".replace("-", "−")
    return f"<b>{loss:.3f}</b> nats ({signed}{half}), perplexity {perplexity}"


def _next_token(view: View, effect: Effect, given: Mapping[str, Any]) -> None:
    """The most likely next tokens with all heads and with ablated heads."""
    added = _added_token(view)
    shown = _candidates(effect.full.text, effect.ablated.text, added)
    caption(
        "Next token",
        "Its probability after the text. Pale: full model; violet: with heads ablated.",
    )
    chart(
        recipe(view, _draw_next, **given, added=added),
        key="next",
        name="Next token",
        height=44 + 23 * len(shown),
        alt="; ".join(
            f"{_label(view.model, c)} {c.before:.3f}, ablated {c.after:.3f}" for c in shown[:5]
        ),
    )
    for candidate in shown:
        if candidate.id in added:
            _ranks(_label(view.model, candidate), candidate)


def _candidates(full: Pass, without: Pass, added: Sequence[int]) -> list[Candidate]:
    """The most likely tokens of both runs, and then those that the user added."""
    candidates = next_tokens(full, without, TOP, also=added)
    top = [candidate for candidate in candidates if candidate.id not in added][: TOP + NEW]
    return top + [candidate for candidate in candidates if candidate.id in added]


def _draw_next(
    model: Model, full: Pass, without: Pass, added: Sequence[int], theme: Theme, sizes: TextSizes
) -> Drawn:
    shown = _candidates(full, without, added)
    labels = [_label(model, candidate) for candidate in shown]
    before, after = [c.before for c in shown], [c.after for c in shown]
    figure = compare_predictions(labels, before, after, theme, names=RUNS, sizes=sizes)
    ids = [candidate.id for candidate in shown]
    data = rows_data(["id", "token", *RUNS], list(zip(ids, labels, before, after, strict=True)))
    return figure, data


def _label(model: Model, candidate: Candidate) -> str:
    return model.read([candidate.id])[0].label


def _ranks(label: str, candidate: Candidate) -> None:
    before = f"probability {candidate.before:.4f}, rank {candidate.rank_before:,}"
    after = f"probability {candidate.after:.4f}, rank {candidate.rank_after:,}"
    caption(escaped(label), f"Full model: {before}. With heads ablated: {after}.")


def _added_token(view: View) -> list[int]:
    """The id of a token that the user adds to the chart; empty if there is none."""
    typed = explained.text_input(
        "Another token",
        key="wanted",
        bind="query-params",
        placeholder="for example ring",
        help="Adds a token to the chart. For a word, the token that starts with a space is tried "
        "first.",
    )
    if not typed:
        return []
    try:
        as_typed, after_space = (view.model.encode(text)[0] for text in (typed, f" {typed}"))
    except MhaVizError as error:
        problem(str(error))
        return []
    # A word within a text starts with a space.
    first, second = (after_space, as_typed) if typed.isalpha() else (as_typed, after_space)
    ids = first if len(first) <= len(second) else second
    if len(ids) > 1:
        label = view.model.read(ids[:1])[0].label
        notice(f"The model splits this into {len(ids)} tokens; showing the first one, {label}.")
    return ids[:1]


def _token_losses(view: View, effect: Effect, given: Mapping[str, Any]) -> None:
    before, after = effect.full.text_losses, effect.ablated.text_losses
    worst = int((after - before).argmax())
    increase = f"{after[worst] - before[worst]:+.2f}"
    largest = f" Largest increase: {escaped(view.trace.tokens[worst + 1])}, {increase}."
    caption(
        "Loss of each token",
        "Bars: with heads ablated (orange where the loss rose by more than 0.05, blue where it "
        "fell by as much). Line: full model. In nats."
        f"{largest if float(increase) > 0 else ''}",
    )
    alt = (
        f"Mean loss {after.mean():.3f} nats per token with heads ablated, {before.mean():.3f} with "
        "all heads."
    )
    drawn = recipe(view, _draw_losses, **given)
    chart(drawn, key="token_losses", name="Loss of each token", height=230, alt=alt)


def _draw_losses(trace: Trace, full: Pass, without: Pass, theme: Theme, sizes: TextSizes) -> Drawn:
    before, after = full.losses(), without.losses()
    figure = token_losses(trace.tokens, before, after, theme, sizes=sizes)
    rows = list(zip(range(1, trace.n_tokens), trace.tokens[1:], before, after, strict=True))
    data = rows_data(["position", "token", *(f"loss, {run}" for run in RUNS)], rows)
    return figure, data


def _changed_patterns(effect: Effect) -> None:
    """Buttons for the heads whose patterns changed most; a click selects one."""
    caption(
        "Patterns that changed most",
        "Total variation distance between a head's rows before and after, averaged over queries "
        "that are not special tokens: 0 = unchanged, 1 = no key in common. Click a head to select "
        "it.",
    )
    change = effect.pattern_change
    order = np.argsort(-np.nan_to_num(change, nan=-1.0), axis=None)[:N_CHANGED]
    heads = [Head(*map(int, np.unravel_index(i, change.shape))) for i in order]
    changed = [head for head in heads if change[head] > 1e-6]
    if not changed:
        explained.note("No pattern changes.")
    with st.container(horizontal=True):
        for head in changed:
            head_button(head, float(change[head]), key=f"changed {head.key}")


def _downloads(view: View, effect: Effect) -> None:
    losses = zip(effect.full.text_losses, effect.ablated.text_losses, strict=True)
    loss_rows = [
        [position, view.trace.tokens[position], float(before), float(after)]
        for position, (before, after) in enumerate(losses, start=1)
    ]
    candidates = pruning.next_tokens(effect.full.text, effect.ablated.text, DOWNLOADED)
    token_rows = [
        [c.id, _label(view.model, c), c.before, c.after, c.rank_before, c.rank_after]
        for c in candidates
    ]
    ranks = [f"rank, {run}" for run in RUNS]
    with st.container(horizontal=True):
        header = ["position", "token", *RUNS]
        download_table("token_losses.csv", header, loss_rows, label="Download losses (CSV)")
        header = ["id", "token", *RUNS, *ranks]
        download_table("next_tokens.csv", header, token_rows, label="Download next tokens (CSV)")
