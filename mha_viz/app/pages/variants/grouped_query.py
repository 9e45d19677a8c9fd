"""The Grouped-query attention part: fewer key/value heads, what that saves, and what it costs."""

from collections.abc import Callable, Sequence

import numpy as np
import streamlit as st

from mha_viz.app.messages import escaped, notice, problem
from mha_viz.app.pages.variants.loss_by_groups import losses_by_groups, measured_loss
from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.caption import caption, model_name
from mha_viz.app.widgets.chart import chart
from mha_viz.app.widgets.choices import segmented_control
from mha_viz.app.widgets.download_buttons import download_table
from mha_viz.app.widgets.reference_text import Reference, reference
from mha_viz.app.widgets.tables import facts
from mha_viz.app.work.progress import MULTIPLY_ADDS, results
from mha_viz.errors import MhaVizError
from mha_viz.figures.lines import Line, Ticks, line_chart
from mha_viz.figures.sharing import sharing_figure
from mha_viz.figures.text import format_bytes
from mha_viz.lessons.counting import attention_parameters, kv_cache_bytes
from mha_viz.model import Model
from mha_viz.pruning import chunks

MOST_TOKENS = 8192  # of the evaluation texts


def show(view: View) -> None:
    """The drawing, the savings, and the loss for each number of key/value heads G."""
    config = view.model.config
    if any(config.pruned_heads):
        notice(
            "Some heads have been pruned from this model, so the heads of a layer may not divide "
            "into equal groups. Choose a model with all its heads."
        )
        return
    own = config.n_kv_heads or config.n_heads
    groups = [n for n in range(own, 0, -1) if own % n == 0]
    G = segmented_control("Key/value heads G", groups, groups[len(groups) // 2], "kv_heads")
    _drawing(view, G)
    left, right = st.columns(2, gap="medium")
    with left:
        _savings(view, G, own)
    with right:
        _losses(view, G, groups)


def _drawing(view: View, G: int) -> None:
    H = view.model.config.n_heads
    caption(
        _kind(G, H),
        f"Layer {view.layer}: {H} query heads (top) and {G} key/value head{'s' * (G > 1)} "
        "(bottom). A line connects each query head to the keys and values that it uses.",
    )
    alt = (
        f"{H} query heads share {G} key/value heads, {H // G} each; H{view.head} uses key/value "
        f"head {view.head // (H // G)}."
    )
    figure = sharing_figure(H, G, view.theme, selected=view.head, sizes=view.sizes)
    chart(figure, key="sharing", height=170, alt=alt)


def _kind(G: int, H: int) -> str:
    if G == H:
        return "Multi-head attention"
    return "Multi-query attention" if G == 1 else "Grouped-query attention"


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
    return f"{heads} use the same keys and values. To convert a model, take the mean of theirs:"


def _losses(view: View, G: int, groups: Sequence[int]) -> None:
    """The loss for each G, drawn as it is measured; quick measurements start at once."""
    above_reference_text = st.container()
    text = reference()
    try:
        token_ids, truncated = _evaluation_chunks(view.about.weights_hash, text, _model=view.model)
    except MhaVizError as error:
        problem(str(error))
        return
    with above_reference_text:
        if truncated:
            notice(truncated)
        chart_area = st.container()
        key = f"{view.about.weights_hash} {view.model.device.type} {text.key}"
        model = view.model
        losses, _ = results(
            f"loss by G {key}",
            lambda report: losses_by_groups(key, model, token_ids, groups, report),
            total=len(groups),
            what="values of G",
            cost=_cost(view, key, token_ids, groups),
        )
        with chart_area:
            _loss_chart(view, G, groups, token_ids, text.name, dict(losses))
        if losses:
            explained.paragraph("  ·  ".join(f"G = {n}: **{loss:.3f}**" for n, loss in losses))
            download_table("loss_by_kv_heads.csv", ["G", "loss, nats per token"], losses)


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
    text_name: str,
    losses: dict[int, float],
) -> None:
    n_tokens = sum(map(len, token_ids)) - len(token_ids)
    caption(
        "Loss for each G",
        f"{escaped(text_name)}: mean over {n_tokens:,} tokens in {len(token_ids)} chunks, each run "
        "separately. Keys and values are mean-pooled in every layer, without further training "
        "(Ainslie et al. 2023 train for 5% more steps).",
    )
    measured = [n for n in groups if n in losses]
    figure = line_chart(
        [groups.index(n) for n in measured],
        [Line("loss", [losses[n] for n in measured], view.theme.accent)],
        view.theme,
        x_title="key/value heads G",
        y_title="loss, nats per token",
        x_ticks=Ticks(range(len(groups)), [str(n) for n in groups]),
        x_range=(-0.3, len(groups) - 0.7),
        marked=groups.index(G),
        sizes=view.sizes,
    )
    values = ", ".join(f"G = {n}: {losses[n]:.3f}" for n in measured) or "nothing measured yet"
    chart(figure, key="loss_by_G", height=270, alt=f"Loss: {values}.")


@st.cache_resource(max_entries=8, show_spinner=False)
def _evaluation_chunks(
    weights: str, text: Reference, *, _model: Model
) -> tuple[list[list[int]], str]:
    """The token ids of the evaluation texts, and a message if they are truncated."""
    token_ids = chunks(_model, text.evaluation, _model.config.n_positions)
    n_tokens = np.cumsum([len(chunk) for chunk in token_ids])
    n_kept = max(1, int((n_tokens <= MOST_TOKENS).sum()))
    if n_kept == len(token_ids):
        return token_ids, ""
    return token_ids[:n_kept], (
        f"{text.name} has {n_tokens[-1]:,} tokens for evaluation; only the first "
        f"{n_tokens[n_kept - 1]:,} are used."
    )
