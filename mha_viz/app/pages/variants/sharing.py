"""Shared keys: fewer key/value heads than query heads, what that saves, and what it costs."""

from collections.abc import Callable, Sequence

import numpy as np
import streamlit as st

from mha_viz.app.messages import escaped, notice, problem
from mha_viz.app.pages.variants import losses
from mha_viz.app.view import View
from mha_viz.app.widgets.caption import caption, model_name
from mha_viz.app.widgets.chart import chart
from mha_viz.app.widgets.choices import segmented_control
from mha_viz.app.widgets.download_buttons import download_table
from mha_viz.app.widgets.reference_text import Reference, reference
from mha_viz.app.widgets.tables import facts
from mha_viz.app.work.progress import MULTIPLY_ADDS, results
from mha_viz.errors import MhaVizError
from mha_viz.figures.cache_sizes import in_bytes
from mha_viz.figures.lines import Line, Ticks, line_chart
from mha_viz.figures.sharing import sharing_figure
from mha_viz.lessons.counting import attention_parameters, kv_cache_bytes
from mha_viz.model import Model
from mha_viz.pruning import chunks

MOST_TOKENS = 8192  # that measure


def show(view: View) -> None:
    """The drawing, the arithmetic, and the loss against G."""
    config = view.model.config
    if any(config.pruned_heads):
        notice(
            "Heads were taken out of this model, so that a layer's heads need not divide into "
            "equal groups. Choose a whole model to see its heads share keys and values."
        )
        return
    own = config.n_kv_heads or config.n_heads
    groups = [n for n in range(own, 0, -1) if own % n == 0]
    G = segmented_control("Key/value heads G", groups, groups[len(groups) // 2], "kv_heads")
    _drawing(view, G)
    left, right = st.columns(2, gap="medium")
    with left:
        _arithmetic(view, G, own)
    with right:
        _losses(view, G, groups)


def _drawing(view: View, G: int) -> None:
    H = view.model.config.n_heads
    caption(
        _kind(G, H),
        f"layer {view.layer}: {H} query heads above, {G} key/value head{'s' * (G > 1)} below; "
        "a line leads to the keys and values that a query head reads.",
    )
    chart(
        sharing_figure(H, G, view.theme, chosen=view.head, sizes=view.sizes), key="sharing",
        height=170,
        alt=f"{H} query heads share {G} key/value heads, {H // G} each; H{view.head} reads "
        f"key/value head {view.head // (H // G)}.",
    )  # fmt: skip


def _kind(G: int, H: int) -> str:
    if G == H:
        return "Multi-head attention"
    return "Multi-query attention" if G == 1 else "Grouped-query attention"


def _arithmetic(view: View, G: int, own: int) -> None:
    config = view.model.config
    H, C, d_h = config.n_heads, config.d_model, config.d_head
    n_bytes = view.model.network.dtype.itemsize

    def both(of: Callable[[int], int], write: Callable[[int], str]) -> str:
        before, after = of(own), of(G)
        if before == after:
            return write(before)
        return f"{write(before)} → {write(after)} ({after / before:.0%})"

    def weights(n: int) -> int:
        return attention_parameters(C, H, n_kv_heads=n, d_head=d_h).total

    def cache(n: int, n_tokens: int) -> int:
        return kv_cache_bytes(config.n_layers, n, d_h, n_tokens=n_tokens, bytes_per_value=n_bytes)

    T = config.n_positions
    change = f" from G = {own} to G = {G}" if own != G else ""
    caption("What it saves", f"{escaped(model_name(view))}{change}; {n_bytes} bytes a number.")
    st.latex(r"\text{weights} = 2\,C\,H\,d_h + 2\,C\,G\,d_h + \text{biases}")
    st.latex(r"\text{cache} = 2\,L\,G\,d_h \ \text{numbers a token}")
    facts(
        {
            "weights of a layer": both(weights, "{:,}".format),
            "cache, a token": both(lambda n: cache(n, 1), in_bytes),
            f"cache, {T:,} tokens": both(lambda n: cache(n, T), in_bytes),
        }
    )
    st.markdown(_sentence(G, H))
    st.latex(r"W_K^{(g)} = \frac{G}{H}\sum_{h\,\in\,g} W_K^{(h)}\quad\text{and so for } W_V")
    st.caption(
        "Shazeer 2019, section 3 (G = 1); Ainslie et al. 2023, sections 2.1 (the mean) and 2.2."
    )


def _sentence(G: int, H: int) -> str:
    if G == H:
        return "Every query head has keys and values of its own: nothing is shared."
    who = "All query heads" if G == 1 else f"The {H // G} query heads of a group"
    return f"{who} read the same keys and values. To convert a model, take the mean of theirs:"


def _losses(view: View, G: int, groups: Sequence[int]) -> None:
    """The loss for each G, drawn as it is measured beside the page; quick ones start at once."""
    above = st.container()
    text = reference()
    try:
        parts, cut = _pieces(view.about.weights_hash, text, _model=view.model)
    except MhaVizError as error:
        problem(str(error))
        return
    with above:
        if cut:
            notice(cut)
        picture = st.container()
        key = f"{view.about.weights_hash} {view.model.device.type} {text.key}"
        model = view.model
        found, _ = results(
            f"loss by G {key}", lambda report: losses.measured(key, model, parts, groups, report),
            total=len(groups), what="values of G", cost=_cost(view, key, parts, groups),
        )  # fmt: skip
        with picture:
            _chart(view, G, groups, parts, text.name, dict(found))
        if found:
            _numbers(found)


def _cost(view: View, key: str, parts: Sequence[list[int]], groups: Sequence[int]) -> str:
    """What a measurement takes, where it takes long and was not made before."""
    missing = [n for n in groups if losses.known(key, n) is None]
    n_tokens = sum(map(len, parts))
    if view.about.n_parameters * n_tokens * len(missing) <= MULTIPLY_ADDS:
        return ""
    return f"{len(missing)} values of G on {n_tokens:,} tokens: a while on a model of this size."


def _chart(
    view: View, G: int, groups: Sequence[int], parts: Sequence[list[int]], title: str,
    found: dict[int, float],
) -> None:  # fmt: skip
    n_tokens = sum(map(len, parts)) - len(parts)
    caption(
        "Loss against G",
        f"{escaped(title)}: mean over {n_tokens:,} tokens in {len(parts)} pieces that were each "
        "read on their own. Keys and values are pooled by their mean in every layer, and nothing "
        "is trained afterwards (Ainslie et al. 2023 train on for 5 % of the steps).",
    )
    order = [n for n in groups if n in found]
    figure = line_chart(
        [groups.index(n) for n in order],
        [Line("loss", [found[n] for n in order], view.theme.accent)],
        view.theme, x_title="key/value heads G", y_title="loss, nats a token",
        x_ticks=Ticks(range(len(groups)), [str(n) for n in groups]),
        x_range=(-0.3, len(groups) - 0.7), marked=groups.index(G), sizes=view.sizes,
    )  # fmt: skip
    told = ", ".join(f"G = {n}: {found[n]:.3f}" for n in order) or "nothing measured yet"
    chart(figure, key="loss_by_G", height=270, alt=f"Loss: {told}.")


def _numbers(found: Sequence[tuple[int, float]]) -> None:
    st.markdown("  ·  ".join(f"G = {n}: **{loss:.3f}**" for n, loss in found))
    download_table("loss_by_kv_heads.csv", ["G", "loss, nats a token"], found)


@st.cache_resource(max_entries=8, show_spinner=False)
def _pieces(
    weights: str, text: Reference, *, _model: Model
) -> tuple[list[list[int]], str]:  # fmt: skip
    """The token ids of what measures, and a word where that is more than is read."""
    found = chunks(_model, text.evaluation, _model.config.n_positions)
    sizes = np.cumsum([len(piece) for piece in found])
    kept = max(1, int((sizes <= MOST_TOKENS).sum()))
    if kept == len(found):
        return found, ""
    return found[:kept], (
        f"{text.name}: {sizes[-1]:,} tokens would measure; the first {sizes[kept - 1]:,} do."
    )
