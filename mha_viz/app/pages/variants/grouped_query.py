"""The Grouped-query attention part: fewer key/value heads, what that saves, and what it costs."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import streamlit as st

from mha_viz.analysis.reference_texts import evaluation_texts as evaluation_texts  # for scripts
from mha_viz.app.messages import escaped, notice, problem
from mha_viz.app.pages.variants import cards, decoding, recovery
from mha_viz.app.pages.variants.loss_by_groups import (
    loss_with as loss_with,  # for scripts
)
from mha_viz.app.pages.variants.loss_by_groups import losses_by_groups, measured_loss
from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.caption import caption, model_name
from mha_viz.app.widgets.chart import chart
from mha_viz.app.widgets.choices import segmented_control
from mha_viz.app.widgets.download_buttons import download_table
from mha_viz.app.widgets.recipes import recipe
from mha_viz.app.widgets.reference_text import Reference, reference
from mha_viz.app.widgets.tables import facts
from mha_viz.app.work.progress import MULTIPLY_ADDS, results
from mha_viz.errors import MhaVizError
from mha_viz.export import Drawn, Given, columns_data
from mha_viz.figures.lines import Line, Ticks, line_chart
from mha_viz.figures.text import format_bytes
from mha_viz.figures.theme import TextSizes, Theme
from mha_viz.lessons.counting import attention_parameters, kv_cache_bytes
from mha_viz.lessons.recovery import STEPS, Recovery
from mha_viz.model import Model
from mha_viz.pruning import chunks

MAX_TOKENS = 8192  # of the evaluation texts


def show(view: View) -> None:
    """The cards of each G, recovery, savings, and the loss for each number of key/value heads G."""
    config = view.model.config
    if any(config.pruned_heads):
        notice(
            "Some heads have been pruned from this model, so the heads of a layer may not divide "
            "into equal groups. Choose a model with all its heads."
        )
        return
    own = config.n_kv_heads or config.n_heads
    groups = [n for n in range(own, 0, -1) if own % n == 0]
    headline = st.container()
    G = segmented_control("Key/value heads G", groups, groups[len(groups) // 2], "kv_heads")
    cards_area = st.container()
    left, right = st.columns(2, gap="medium")
    with left:
        recovery.show(view, G)
    with right:
        losses, text = _losses(view, G, groups)
    runs = {} if text.uploaded else {run.n_kv_heads: run for run in recovery.stored(view)}
    with headline:
        explained.paragraph(summary(own, G, losses, runs))
    with cards_area:
        cards.show(view, G, groups, losses, runs)
    left, right = st.columns(2, gap="medium")
    with left:
        _savings(view, G, own)
    with right:
        decoding.show(view, G, own)


def summary(own: int, G: int, losses: Mapping[int, float], runs: Mapping[int, Recovery]) -> str:
    """What sharing saves and what it costs, as far as it is known."""
    if own == G:
        return "With its own G, nothing changes. Choose a smaller one to share keys and values."
    saving = f"**G = {G} shrinks the cache to {G / own:.0%}.**"
    if G not in losses or own not in losses:
        return saving
    cost = f"Converting the trained model takes its loss from {losses[own]:.2f} to {losses[G]:.2f}"
    if G not in runs:
        return f"{saving} {cost}; without further training, that is what sharing costs."
    further = f"{STEPS} steps of further training bring it to {runs[G].trained_on:.2f}"
    return f"{saving} {cost}; {further}."


def _savings(view: View, G: int, own: int) -> None:
    """The parameters and the cache with the model's own key/value heads and with G of them."""
    config = view.model.config
    H, C, d_h, T = config.n_heads, config.d_model, config.d_head, config.n_positions
    n_bytes = view.model.network.dtype.itemsize

    def parameters(G: int) -> int:
        return attention_parameters(C, H, n_kv_heads=G, d_head=d_h).total

    def cache_per_token(G: int) -> int:
        return kv_cache_bytes(config.n_layers, G, d_h, bytes_per_value=n_bytes)

    def change(size: Callable[[int], int], format: Callable[[int], str]) -> str:
        before, after = size(own), size(G)
        if before == after:
            return format(before)
        return f"{format(before)} → {format(after)} ({after / before:.0%})"

    conversion = f" from G = {own} to G = {G}" if own != G else ""
    caption("Savings", f"{escaped(model_name(view))}{conversion}, {n_bytes} bytes per value.")
    st.latex(r"\text{parameters} = 2\,C\,H\,d_h + 2\,C\,G\,d_h + \text{biases}")
    st.latex(r"\text{cache} = 2\,L\,G\,d_h \ \text{values per token}")
    facts(
        {
            "parameters per layer": change(parameters, "{:,}".format),
            "cache per token": change(cache_per_token, format_bytes),
            f"cache, {T:,} tokens": change(lambda G: T * cache_per_token(G), format_bytes),
        }
    )
    explained.paragraph(_sharing_sentence(G, H))
    st.latex(r"W_K^{(g)} = \frac{G}{H}\sum_{h\,\in\,g} W_K^{(h)}\quad\text{and likewise } W_V")
    explained.note(
        "Shazeer 2019, section 3 (G = 1); Ainslie et al. 2023, sections 2.1 (the mean) and 2.2."
    )


def _sharing_sentence(G: int, H: int) -> str:
    if G == H:
        return "Every query head has its own keys and values; nothing is shared."
    heads = "All query heads" if G == 1 else f"The {H // G} query heads of a group"
    return f"{heads} share keys and values. To convert a model, average their weights:"


def _losses(view: View, G: int, groups: Sequence[int]) -> tuple[dict[int, float], Reference]:
    """The loss for each G, drawn as it is measured, and its text; quick ones start at once."""
    above_reference_text = st.container()
    text = reference()
    try:
        token_ids, truncated = _evaluation_chunks(view.model.key, text, _model=view.model)
    except MhaVizError as error:
        problem(str(error))
        return {}, text
    with above_reference_text:
        if truncated:
            notice(truncated)
        chart_area = st.container()
        key = f"{view.model.key} {view.model.device.type} {text.key}"
        model = view.model
        losses, _ = results(
            f"loss by G {key}",
            lambda report: losses_by_groups(key, model, token_ids, groups, report),
            total=len(groups),
            what="values of G",
            cost=_cost(view, key, token_ids, groups),
        )
        with chart_area:
            _loss_chart(view, G, groups, token_ids, text, dict(losses))
        if losses:
            explained.paragraph("  ·  ".join(f"G = {n}: **{loss:.3f}**" for n, loss in losses))
            download_table("loss_by_kv_heads.csv", ["G", "loss, nats per token"], losses)
    return dict(losses), text


def _cost(view: View, key: str, token_ids: Sequence[list[int]], groups: Sequence[int]) -> str:
    """How much work the measurement takes; "" if it is quick or was made before."""
    missing = [n for n in groups if measured_loss(key, n) is None]
    n_tokens = sum(map(len, token_ids))
    if view.about.n_parameters * n_tokens * len(missing) <= MULTIPLY_ADDS:
        return ""
    return (
        f"Measuring {len(missing)} values of G on {n_tokens:,} tokens takes a while with a model "
        "of this size."
    )


def _loss_chart(
    view: View,
    G: int,
    groups: Sequence[int],
    token_ids: Sequence[list[int]],
    text: Reference,
    losses: dict[int, float],
) -> None:
    n_tokens = sum(map(len, token_ids)) - len(token_ids)
    caption(
        "Loss for each G",
        f"{escaped(text.name)}: mean over {n_tokens:,} tokens in {len(token_ids)} chunks, each run "
        "separately. Keys and values are mean-pooled in every layer, without further training "
        "(Ainslie et al. 2023 train for 5% more steps).",
    )
    measured = [n for n in groups if n in losses]
    values = ", ".join(f"G = {n}: {losses[n]:.3f}" for n in measured) or "nothing measured yet"
    drawn = recipe(
        view,
        _draw_losses,
        groups=list(groups),
        measured=measured,
        G=G,
        token_ids=Given(
            token_ids, "_first_chunks(chunks(model, evaluation_texts(), model.config.n_positions))"
        ),
        losses=Given(losses, "{n: loss_with(model, token_ids, n) for n in measured}"),
        cannot=text.cannot,
    )
    chart(drawn, key="loss_by_G", name="Loss for each G", height=270, alt=f"Loss: {values}.")


def _draw_losses(
    groups: Sequence[int], losses: dict[int, float], G: int, theme: Theme, sizes: TextSizes
) -> Drawn:
    measured = [n for n in groups if n in losses]
    figure = line_chart(
        [groups.index(n) for n in measured],
        [Line("loss", [losses[n] for n in measured], theme.accent)],
        theme,
        x_title="key/value heads G",
        y_title="loss, nats per token",
        x_ticks=Ticks(range(len(groups)), [str(n) for n in groups]),
        x_range=(-0.3, len(groups) - 0.7),
        marked=groups.index(G),
        sizes=sizes,
    )
    data = columns_data(G=measured, loss_in_nats_per_token=[losses[n] for n in measured])
    return figure, data


@st.cache_resource(max_entries=8, show_spinner=False)
def _evaluation_chunks(
    weights: str, text: Reference, *, _model: Model
) -> tuple[list[list[int]], str]:
    """The token ids of the evaluation texts, and a message if they are truncated."""
    token_ids = chunks(_model, text.evaluation, _model.config.n_positions)
    kept = _first_chunks(token_ids)
    if len(kept) == len(token_ids):
        return token_ids, ""
    n_tokens, n_kept = (sum(map(len, some)) for some in (token_ids, kept))
    return kept, (
        f"{text.name} has {n_tokens:,} tokens for evaluation; only the first {n_kept:,} are used."
    )


def _first_chunks(token_ids: list[list[int]]) -> list[list[int]]:
    """The chunks that hold at most MAX_TOKENS tokens together, and at least one."""
    n_tokens = np.cumsum([len(chunk) for chunk in token_ids])
    return token_ids[: max(1, int((n_tokens <= MAX_TOKENS).sum()))]
