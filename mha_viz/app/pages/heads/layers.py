"""Many heads in one pattern: mean, maximum, and attention rollout, each with what it leaves out."""

import streamlit as st

from mha_viz.app.messages import escaped
from mha_viz.app.view import View
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.chart import chart
from mha_viz.app.widgets.choices import check_link, segmented_control
from mha_viz.app.widgets.download_buttons import download_matrix
from mha_viz.app.work.progress import Reporter, ResultSlots, wait_for
from mha_viz.figures.heatmap import head_heatmap
from mha_viz.figures.theme import NORMAL, STAGE, THEMES
from mha_viz.figures.window import Window
from mha_viz.heads.rollout import AGGREGATES, max_pattern, mean_pattern, rollout
from mha_viz.trace import Array

ALL = "all layers"

_patterns = ResultSlots[Array](16)


def show(view: View) -> None:
    """The chosen way to merge heads, drawn, with its formula and its limits."""
    with st.container(horizontal=True, vertical_alignment="center"):
        way = segmented_control("Way", list(AGGREGATES), "mean", "aggregate", show_label=False)
        layers = [ALL, *(f"layer {i}" for i in range(view.trace.n_layers))]
        if st.session_state.get("of_layer", ALL) not in layers:
            del st.session_state["of_layer"]  # another model may have fewer
        where = st.selectbox(
            "Layers", layers, key="of_layer", bind="query-params", label_visibility="collapsed",
            width=160,
        )  # fmt: skip
        check_link("of_layer", where)
    layer = None if where == ALL else int(where.removeprefix("layer "))
    pattern = _merged(view, way, layer)
    if pattern is None:
        return
    told = AGGREGATES[way]
    left, right = st.columns([3, 2], gap="medium")
    with left:
        if layer is None:
            over = "over all layers"
        else:
            over = f"up to layer {layer}" if way == "rollout" else f"over layer {layer}"
        caption(told.title, f"{over}; a row looks from, a column is looked at.")
        with st.container(key="map_box", height="stretch"):
            chart(
                head_heatmap(
                    pattern.clip(0, 1), view.trace.tokens, THEMES[view.theme.name],
                    scale=view.scale, dim_sink=view.dim_sink, sizes=STAGE if view.stage else NORMAL,
                    window=_window(view),
                ),
                key="merged", height="stretch",
                alt=f"{told.title} {over}: the last token looks most at "
                    f"{view.trace.tokens[int(pattern[-1].argmax())]}.",
            )  # fmt: skip
    with right:
        st.latex(told.formula)
        st.markdown(told.limits)
        if told.source:
            st.caption(told.source)
        last = pattern[-1]
        best = last.argsort()[::-1][:5]
        named = ", ".join(f"{escaped(view.trace.tokens[k])} ({k}) {last[k]:.2f}" for k in best)
        st.html(f'<p class="caption">The last token reaches most: <b>{named}</b>.</p>')
        download_matrix(f"{way}.csv", pattern, rows=view.trace.tokens)


def _window(view: View) -> Window | None:
    return view.window


def _merged(view: View, way: str, layer: int | None) -> Array | None:
    trace = view.trace
    L = trace.n_layers if layer is None else layer + 1 if way == "rollout" else 1

    def work(report: Reporter) -> Array:
        def on_layer(done: int) -> None:
            report(done / L)

        if way == "rollout":
            return rollout(trace, None if layer is None else layer + 1, on_layer=on_layer)
        merge = mean_pattern if way == "mean" else max_pattern
        return merge(trace, layer, on_layer=on_layer)

    slot = _patterns(view.trace_key, way, layer)
    return wait_for(slot, "Merging all heads", work, lane="merged")
