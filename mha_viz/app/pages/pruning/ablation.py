"""The Ablation part: what the ablated heads change on the text and on the reference text."""

import math

import numpy as np
import streamlit as st

from mha_viz import pruning
from mha_viz.app.messages import escaped, notice, problem
from mha_viz.app.pages.pruning.ablation_runs import Effect, ablation_effect
from mha_viz.app.pages.pruning.ablation_type import Ablation
from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.caption import caption, metrics
from mha_viz.app.widgets.chart import chart
from mha_viz.app.widgets.download_buttons import download_table
from mha_viz.app.widgets.head_links import head_button
from mha_viz.errors import MhaVizError
from mha_viz.figures.predictions import compare_predictions
from mha_viz.figures.token_losses import token_losses
from mha_viz.head import Head
from mha_viz.pruning import Candidate

MOST_CHANGED = 5  # heads that are listed
TOP = 10  # next tokens of the full model
NEW = 2  # and as many that are only in the top with ablated heads
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
    _next_token(view, effect)
    _token_losses(view, effect)
    _changed_patterns(effect)
    _downloads(view, effect)


def _summary(view: View, ablation: Ablation, effect: Effect) -> None:
    n_heads = len(pruning.all_heads(view.model.config))
    full, ablated, divergence = effect.full, effect.ablated, effect.divergence
    metrics(
        f"<b>{len(ablation.heads)} of {n_heads} heads ablated</b>",
        f"this text {_loss_change(full.text_loss, ablated.text_loss)}",
        f"reference text {_loss_change(full.reference_loss, ablated.reference_loss)}",
        f"KL divergence {divergence[-1]:.3f} nats at the last position, "
        f"{divergence.mean():.3f} on average",
    )


def _loss_change(before: float, after: float) -> str:
    change = f"{after - before:+.3f}".replace("-", "−")
    perplexity = f"{math.exp(after):,.1f}" if after < 20 else "over 4.8 × 10⁸"
    return f"<b>{after:.3f}</b> nats ({change}), perplexity {perplexity}"


def _next_token(view: View, effect: Effect) -> None:
    """The most likely next tokens with all heads and with ablated heads."""
    added = _added_token(view)
    candidates = pruning.next_tokens(effect.full.text, effect.ablated.text, TOP, also=added)
    top = [candidate for candidate in candidates if candidate.id not in added][: TOP + NEW]
    shown = top + [candidate for candidate in candidates if candidate.id in added]
    labels = [_label(view, candidate) for candidate in shown]
    before, after = [c.before for c in shown], [c.after for c in shown]
    caption(
        "Next token",
        "Its probability after the text. Pale: full model; violet: with heads ablated.",
    )
    figure = compare_predictions(labels, before, after, view.theme, names=RUNS, sizes=view.sizes)
    rows = [[c.id, label, c.before, c.after] for c, label in zip(shown, labels, strict=True)]
    chart(
        figure,
        key="next",
        name="next-token",
        height=44 + 23 * len(labels),
        table=lambda: (["id", "token", *RUNS], rows),
        alt="; ".join(f"{label} {p:.3f}, ablated {q:.3f}" for _, label, p, q in rows[:5]),
    )
    for candidate in shown:
        if candidate.id in added:
            _ranks(_label(view, candidate), candidate)


def _label(view: View, candidate: Candidate) -> str:
    return view.model.read([candidate.id])[0].label


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


def _token_losses(view: View, effect: Effect) -> None:
    before, after = effect.full.text_losses, effect.ablated.text_losses
    worst = int((after - before).argmax())
    increase = f"{after[worst] - before[worst]:+.2f}".replace("-", "−")
    caption(
        "Loss of each token",
        "Bars: with heads ablated (orange where the loss rose). Line: full model. In nats. "
        f"Largest increase: {escaped(view.trace.tokens[worst + 1])}, {increase}.",
    )
    figure = token_losses(view.trace.tokens, before, after, view.theme, sizes=view.sizes)
    alt = (
        f"Mean loss {after.mean():.3f} nats per token with heads ablated, {before.mean():.3f} with "
        "all heads."
    )
    chart(figure, key="token_losses", height=230, alt=alt)


def _changed_patterns(effect: Effect) -> None:
    """Buttons for the heads whose patterns changed most; a click selects one."""
    caption(
        "Patterns that changed most",
        "Total variation distance between a head's rows before and after, averaged over queries: "
        "0 = unchanged, 1 = no key in common. Click a head to select it.",
    )
    change = effect.pattern_change
    order = np.argsort(-np.nan_to_num(change, nan=-1.0), axis=None)[:MOST_CHANGED]
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
        [c.id, _label(view, c), c.before, c.after, c.rank_before, c.rank_after] for c in candidates
    ]
    ranks = [f"rank, {run}" for run in RUNS]
    with st.container(horizontal=True):
        header = ["position", "token", *RUNS]
        download_table("token_losses.csv", header, loss_rows, label="Download losses (CSV)")
        header = ["id", "token", *RUNS, *ranks]
        download_table("next_tokens.csv", header, token_rows, label="Download next tokens (CSV)")
