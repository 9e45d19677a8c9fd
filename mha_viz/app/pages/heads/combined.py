"""The Combined heads tab: mean, maximum or attention rollout of many heads in one pattern."""

import streamlit as st

from mha_viz.app.messages import escaped
from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.chart import chart
from mha_viz.app.widgets.choices import check_link, segmented_control
from mha_viz.app.widgets.download_buttons import download_matrix
from mha_viz.app.widgets.recipes import recipe
from mha_viz.app.work.progress import Reporter, ResultSlots, wait_for
from mha_viz.export import Drawn, Given, pattern_data
from mha_viz.figures.heatmap import head_heatmap
from mha_viz.figures.scale import Scale
from mha_viz.figures.theme import TextSizes, Theme
from mha_viz.figures.window import Window
from mha_viz.heads.rollout import AGGREGATES, max_pattern, mean_pattern, rollout
from mha_viz.trace import Array, Trace

ALL = "all layers"
N_LARGEST = 5  # values of the last row that are named

_patterns = ResultSlots[Array](16)


def show(view: View) -> None:
    """The combined pattern, its formula and its limits."""
    with st.container(horizontal=True, vertical_alignment="center"):
        method = segmented_control(
            "Method", list(AGGREGATES), "mean", "aggregate", show_label=False
        )
        layer = _choose_layer(view)
    pattern = _combined(view, method, layer)
    if pattern is None:
        return
    left, right = st.columns([3, 2], gap="medium")
    with left:
        _heatmap(view, pattern, method, layer)
    with right:
        _explain(view, pattern, method)


def _choose_layer(view: View) -> int | None:
    """The selected layer; None for all layers."""
    layers = [ALL, *(f"layer {i}" for i in range(view.trace.n_layers))]
    if st.session_state.get("of_layer", ALL) not in layers:
        del st.session_state["of_layer"]  # another model may have fewer
    selected: str = explained.selectbox(
        "Layers",
        layers,
        key="of_layer",
        bind="query-params",
        label_visibility="collapsed",
        width=160,
    )
    check_link("of_layer", selected)
    return None if selected == ALL else int(selected.removeprefix("layer "))


def _combined(view: View, method: str, layer: int | None) -> Array | None:
    trace = view.trace
    up_to = trace.n_layers if layer is None else layer + 1
    n_layers = 1 if layer is not None and method != "rollout" else up_to

    def work(report: Reporter) -> Array:
        def on_layer(done: int) -> None:
            report(done / n_layers)

        if method == "rollout":
            return rollout(trace, up_to, on_layer=on_layer)
        combine = mean_pattern if method == "mean" else max_pattern
        return combine(trace, layer, on_layer=on_layer)

    slot = _patterns(view.trace_key, method, layer)
    return wait_for(slot, "Combining all heads", work, lane="combined")


def _heatmap(view: View, pattern: Array, method: str, layer: int | None) -> None:
    title, tokens = AGGREGATES[method].title, view.trace.tokens
    layers = "all layers" if layer is None else f"layer {layer}"
    over = f"up to {layers}" if method == "rollout" and layer is not None else f"over {layers}"
    caption(title, f"{over.capitalize()}. Rows: queries. Columns: the keys they look at.")
    with st.container(key="map_box", height="stretch"):
        made = "mean_pattern(trace, layer)" if method == "mean" else "max_pattern(trace, layer)"
        up_to = "trace.n_layers" if layer is None else "layer + 1"
        code = f"rollout(trace, {up_to})" if method == "rollout" else made
        chart(
            recipe(view, _draw_combined, layer=layer, pattern=Given(pattern, code)),
            key="merged",
            height="stretch",
            ratio=1,
            name=f"{title} {over}",
            alt=f"{title} {over}: the last token's largest value is at "
            f"{tokens[int(pattern[-1].argmax())]}.",
        )


def _draw_combined(
    trace: Trace,
    pattern: Array,
    window: Window | None,
    scale: Scale,
    dim_sink: bool,
    theme: Theme,
    sizes: TextSizes,
) -> Drawn:
    figure = head_heatmap(
        pattern.clip(0, 1),
        trace.tokens,
        theme,
        window=window,
        scale=scale,
        dim_sink=dim_sink,
        sizes=sizes,
    )
    data = pattern_data(pattern, trace.tokens, token_ids=trace.token_ids)
    return figure, data


def _explain(view: View, pattern: Array, method: str) -> None:
    """Formula, limits and source of the method, and the last token's largest values."""
    aggregate, tokens, last = AGGREGATES[method], view.trace.tokens, pattern[-1]
    st.latex(aggregate.formula)
    explained.paragraph(aggregate.limits)
    if aggregate.source:
        explained.note(aggregate.source)
    largest = last.argsort()[::-1][:N_LARGEST]
    values = ", ".join(f"{escaped(tokens[key])} ({key}) {last[key]:.2f}" for key in largest)
    explained.html(f'<p class="caption">Largest values of the last token: <b>{values}</b>.</p>')
    download_matrix(f"{method}.csv", pattern, rows=tokens)
