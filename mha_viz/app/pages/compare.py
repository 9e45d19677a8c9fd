"""The Compare page: how each head changes with another text, another model or ablated heads."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from mha_viz import pruning
from mha_viz.analysis import compare
from mha_viz.analysis.compare import Alignment, Change
from mha_viz.app import inputs
from mha_viz.app.messages import escaped, notice
from mha_viz.app.samples import DEFAULT
from mha_viz.app.view import View
from mha_viz.app.widgets import explained, head_board
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.chart import chart, record_settings
from mha_viz.app.widgets.choices import segmented_control, text_area
from mha_viz.app.widgets.download_buttons import download_matrix, download_table
from mha_viz.app.widgets.head_links import head_button, selectable_head_map
from mha_viz.app.work import models
from mha_viz.app.work.progress import Reporter, ResultSlots, wait_for
from mha_viz.export import head_table
from mha_viz.figures.values import matrix_heatmap
from mha_viz.head import Head
from mha_viz.trace import Array, Trace

AGAINST = ["another text", "another model", "ablated heads"]
OTHER_TEXT = DEFAULT.replace("king", "queen")
ALL_ABLATED = (
    "All heads are ablated. Only the embeddings, the MLPs and the biases still write to the "
    "residual stream, so there is no head to compare."
)
MOST_TOKENS = 256  # aligned, per side of a heatmap
MOST_TOKENS_AS_TEXT = 400
N_MOST_CHANGED = 5  # heads named by a button
LEAST_TOP = 0.01  # of a colour scale, so that rounding has no colour

_ablated_traces = ResultSlots[Trace](8)
_changes = ResultSlots[tuple[Alignment, Change]](8)


@dataclass(frozen=True, slots=True, eq=False)
class OtherSide:
    """What the text and the model in the sidebar are compared with."""

    trace: Trace
    trace_key: str
    name: str  # in captions
    first_name: str = "this text"  # of the side in the sidebar
    ablated: tuple[Head, ...] = ()


def show(view: View) -> None:
    """The choice of the other side, and how each head differs between the two."""
    other = _choose_other_side(view)
    if other is not None:
        _comparison(view, other)


def _choose_other_side(view: View) -> OtherSide | None:
    """The other side; None after the page has said why there is none."""
    against = segmented_control("Compare with", AGAINST, AGAINST[0], "against", show_label=False)
    if against == AGAINST[0]:
        return _other_text(view)
    return _other_model(view) if against == AGAINST[1] else _ablated_heads(view)


def _other_text(view: View) -> OtherSide | None:
    text = text_area("Other text", OTHER_TEXT, "other_text", height=90)
    if not text:
        st.info("Type a second text. Tokens that occur in both in the same order are aligned.")
        return None
    traced = models.trace(view.source, view.device, text, view.trace.cut, lane="other text")
    record_settings(Compared_with_the_text=text)
    if traced is None:
        return None
    trace, trace_key = traced
    record_settings(Its_token_ids=trace.token_ids)
    _warn_of_dropped_tokens(trace, "The other text", view.about.name)
    inputs.warn_of_replaced_characters(trace, "The other text")
    return OtherSide(trace, trace_key, "the other text")


def _other_model(view: View) -> OtherSide | None:
    source: str = explained.selectbox(
        "Other model",
        list(models.TITLES),
        key="other_model",
        bind="query-params",
        accept_new_options=True,
        help="It must have as many layers and heads as the model in the sidebar.",
    )
    source = source or "bundled"
    model = inputs.obtain(source, view.device, lane="other model")
    if model is None:
        return None
    first = view.trace
    traced = models.trace(source, view.device, first.text, first.cut, lane="other text")
    about = model.description
    record_settings(Compared_with=f"{about.name} ({about.source}), SHA-256 {about.weights_hash}")
    if traced is None:
        return None
    trace, trace_key = traced
    _warn_of_dropped_tokens(trace, "The text", about.name)
    return OtherSide(trace, trace_key, about.name, view.about.name)


def _warn_of_dropped_tokens(trace: Trace, text: str, model: str) -> None:
    dropped, n = trace.left_out, trace.n_tokens
    if dropped:
        first, last = ("first", "last") if trace.cut == "end" else ("last", "first")
        notice(
            f"{text} has {n + dropped:,} tokens, but the context of {model} holds {n:,}. Comparing "
            f"the {first} {n:,}; the {last} {dropped:,} are dropped."
        )


def _ablated_heads(view: View) -> OtherSide | None:
    heads = head_board.ablated_heads(view)
    if not heads:
        st.info("Name heads to ablate, for example L0H1-L3H4, or ablate them on the Pruning page.")
        return None
    gate = pruning.gate_without(view.model.config, heads).numpy()

    def work(report: Reporter) -> Trace:
        def on_layer(done: int) -> None:
            report(done / view.trace.n_layers)

        return view.model.trace_ids(view.trace.token_ids, head_gate=gate, on_layer=on_layer)

    trace_key = f"{view.trace_key} {heads}"
    slot = _ablated_traces(trace_key)
    trace = wait_for(slot, "Running with these heads ablated", work, lane="other text")
    if trace is None:
        return None
    name = f"{len(heads)} head{'s' * (len(heads) != 1)} ablated"
    return OtherSide(trace, trace_key, name, "full model", heads)


def _comparison(view: View, other: OtherSide) -> None:
    """The aligned tokens, the change of each head, and the selected head on both sides."""
    compared = _compare(view, other)
    if compared is None:
        return
    alignment, change = compared
    _tokens(view, other, alignment)
    if not change.n_queries:
        notice("The two sides share no token after the first, so there is nothing to compare.")
        return
    if not np.isfinite(change.distance).any():
        no_heads = "No head exists in both models, so there is nothing to compare."
        notice(ALL_ABLATED if other.ablated else no_heads)
        return
    left, right = st.columns([2, 3], gap="medium")
    with left:
        _change_map(view, other, change)
        _most_changed(change)
    with right:
        _selected_head(view, other, alignment)


def _compare(view: View, other: OtherSide) -> tuple[Alignment, Change] | None:
    """The alignment and the change of each head; None while they are computed."""
    a, b = view.trace, other.trace

    def work(report: Reporter) -> tuple[Alignment, Change]:
        alignment = compare.align_traces(a, b)
        change = compare.change(a, b, alignment, on_layer=lambda done: report(done / a.n_layers))
        for head in other.ablated:  # it still has a pattern, but the pattern has no effect
            for values in (change.distance, change.elsewhere_a, change.elsewhere_b):
                values[head] = np.nan
        return alignment, change

    slot = _changes(view.trace_key, other.trace_key)
    return wait_for(slot, "Comparing all heads", work, lane="changes")


def _tokens(view: View, other: OtherSide, alignment: Alignment) -> None:
    """The tokens of both sides, with the unaligned ones marked."""
    n = len(alignment)
    caption(
        "Tokens",
        f"{n} token{'s occur' if n != 1 else ' occurs'} on both sides in the same order and "
        f"{'are' if n != 1 else 'is'} aligned, as in a diff. The rest are struck through (above) "
        "or underlined (below).",
    )
    first = _marked_tokens(view.trace, alignment.a, "s")
    second = _marked_tokens(other.trace, alignment.b, "u")
    st.html(f'<div class="diff"><div>{first}</div><div>{second}</div></div>')


def _marked_tokens(trace: Trace, aligned: compare.Positions, tag: str) -> str:
    kept = set(aligned.tolist())
    tokens = map(escaped, trace.tokens[:MOST_TOKENS_AS_TEXT])
    marked = [t if i in kept else f"<{tag}>{t}</{tag}>" for i, t in enumerate(tokens)]
    return " ".join(marked) + (" …" if trace.n_tokens > MOST_TOKENS_AS_TEXT else "")


def _change_map(view: View, other: OtherSide, change: Change) -> None:
    """How much each head changed; a click on a cell selects the head."""
    largest = float(np.nanmax(change.distance))
    top = max(largest, LEAST_TOP)
    blank = " Ablated heads are blank." if other.ablated else ""
    caption(
        "Change of each head",
        "How far its pattern differs between the two sides. Rows: layers. Columns: heads. Colour "
        f"runs from 0 to {top:.2f}.{blank} Click a cell to select the head.",
    )
    selectable_head_map(
        view,
        change.distance,
        (0.0, top),
        key="change_map",
        name="change",
        column="change",
        alt=f"Change of each head, at most {largest:.3f}.{blank}",
    )


def _most_changed(change: Change) -> None:
    """Buttons for the heads that changed most, and the data of all heads."""
    distance = change.distance
    order = np.argsort(-np.nan_to_num(distance, nan=-1.0), axis=None)[:N_MOST_CHANGED]
    heads = [Head(*divmod(int(flat), distance.shape[1])) for flat in order]
    with st.container(horizontal=True):
        for head in heads:
            if np.isfinite(distance[head]):
                head_button(head, distance[head], key=f"change {head.key}")
    explained.note(f"Change: {compare.DISTANCE}.")
    columns = ["distance", "weight on unaligned keys before", "weight on unaligned keys after"]
    table = head_table(columns, distance, change.elsewhere_a, change.elsewhere_b)
    download_table("change.csv", *table)


def _selected_head(view: View, other: OtherSide, alignment: Alignment) -> None:
    """The pattern of the selected head on both sides, and the difference."""
    label = view.at.label
    a, b = compare.aligned_patterns(view.trace, other.trace, view.layer, view.head, alignment)
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        notice(f"{label} has been pruned from one of the two models.")
        return
    if view.at in other.ablated:
        notice(
            f"{label} is ablated and writes nothing; its pattern only shows where it would look."
        )
    tokens = [view.trace.tokens[i] for i in alignment.a]
    n = min(len(tokens), MOST_TOKENS)
    if n < len(tokens):
        notice(f"Showing the first {n} of {len(tokens):,} aligned tokens.")
        a, b, tokens = a[:n, :n], b[:n, :n], tokens[:n]
    left, right = st.columns(2, gap="small")
    with left:
        _pattern(view, "before", other.first_name, a, tokens)
    with right:
        _pattern(view, "after", other.name, b, tokens)
    _difference(view, other, b - a, tokens)


def _pattern(view: View, key: str, side: str, pattern: Array, tokens: list[str]) -> None:
    caption(
        f"{view.at.label}, {escaped(side)}",
        "Each row shows what one aligned token looks at, among aligned tokens. Colour: √ weight.",
    )
    most_labels = 10 if view.stage else 16
    figure = _heatmap(view, pattern, tokens, weights=True, most_labels=most_labels)
    alt = f"Pattern of {view.at.label}: {side}, {len(tokens)} aligned tokens."
    chart(figure, key=f"pattern {key}", height=330, alt=alt)


def _difference(view: View, other: OtherSide, difference: Array, tokens: list[str]) -> None:
    largest = float(np.abs(difference).max())
    caption(
        f"{view.at.label}, difference",
        f"“{escaped(other.name)}” minus “{escaped(other.first_name)}”. Rows look at columns. "
        f"Orange: more weight. Blue: less. The largest change is {largest:.2f}.",
    )
    top, most_labels = max(largest, LEAST_TOP), 14 if view.stage else 20
    figure = _heatmap(view, difference, tokens, top=top, most_labels=most_labels)
    alt = f"Difference of the patterns of {view.at.label}, at most {largest:.3f}."
    chart(figure, key="difference", height=420, alt=alt)
    download_matrix("difference.csv", difference.astype(np.float32), rows=tokens)


def _heatmap(view: View, values: Array, tokens: list[str], **options: Any) -> go.Figure:
    """The values `[n, n]` of aligned tokens, blank where the key comes after the query."""
    visible = np.where(np.tri(len(values), dtype=bool), values, np.float32(np.nan))
    options |= {"rows": "from", "columns": "to", "both": True, "tokens": tokens}
    return matrix_heatmap(visible, view.theme, sizes=view.sizes, **options)
