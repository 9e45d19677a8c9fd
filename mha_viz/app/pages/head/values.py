"""The Values part: how much each weight moves, and what the head says of the next token."""

import math
from collections.abc import Iterator
from functools import partial

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from mha_viz.analysis import dot_product, logit_attribution
from mha_viz.app.messages import escaped
from mha_viz.app.pages.head import cells
from mha_viz.app.pages.head.maps import LABELS, part_shown, save, seen_weights, weight_map
from mha_viz.app.view import View
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.chart import chart, square
from mha_viz.app.widgets.download_buttons import download_table
from mha_viz.app.widgets.token_strip import token_strip
from mha_viz.app.work.progress import Reporter, may_start, results
from mha_viz.figures.cells import cell_map
from mha_viz.figures.logit_effects import pushes, pushes_height
from mha_viz.figures.theme import NORMAL, STAGE, THEMES
from mha_viz.figures.window import Window
from mha_viz.trace import Array

PUSHED = 8  # tokens a side
SAVED = 200  # tokens a side in the file


def show(view: View) -> None:
    """The pattern beside what it moves, and below it the effect on the next token."""
    token_strip(view)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        query = cells.query_input(view)
        key = cells.key_input(view, int(seen_weights(view)[query, : query + 1].argmax()))
        _pair(view, query, key)
    left, right = st.columns(2, gap="small")
    with left:
        caption("Weights α", "a row asks, a column is read; each row adds up to 1; colour = √.")
        square(weight_map(view), "values_weights", f"Weights of {view.at.label}.")
    with right:
        moved(view, "values_moved")
    part_shown(view)
    _compared(view)
    maps = {"values_weights": lambda: seen_weights(view), "values_moved": lambda: amounts(view)}
    cells.picks(view, maps, key=key)
    _next_token(view)


def _pair(view: View, query: int, key: int) -> None:
    norm = norms(view)[key]
    if key > query:
        what = "masked, nothing is moved."
    else:
        weight = seen_weights(view)[query, key]
        what = f"weight {weight:.4f} × norm {norm:.3f} = <b>{weight * norm:.4f}</b>."
    pair = f"{cells.named(view, query)} from {cells.named(view, key)}"
    st.html(f'<div class="score"><span>{pair}: {what}</span></div>')


def moved(view: View, key: str) -> None:
    """The map of value-weighted attention, as the chart of that name."""
    top = float(np.nanmax(amounts(view)))
    caption(
        "Value-weighted ‖α f(x)‖",
        f"weight × norm of what the key sends, up to {top:.3g}; colour = √.",
    )
    figure = _map(
        view.trace_key, view.layer, view.head, view.window, view.stage, view.theme.name, _view=view
    )
    square(figure, key, f"Value-weighted attention of {view.at.label}: the largest is {top:.3g}.")


def amounts(view: View) -> Array:
    """`[T, T]`: the norms of what each key moves to each query, NaN beyond the query."""
    out: Array = seen_weights(view) * norms(view)[None, :]
    return out


def norms(view: View) -> Array:
    """`[T]`: the norms of what each position offers through the head."""
    return _norms(view.trace_key, view.layer, view.head, _view=view)


@st.cache_resource(max_entries=32, show_spinner=False)
def _norms(trace_key: str, layer: int, head: int, *, _view: View) -> Array:
    del trace_key  # only tells texts apart
    return logit_attribution.value_norms(_view.model, _view.trace, layer, head)


@st.cache_resource(max_entries=16, show_spinner=False)
def _map(
    trace_key: str, layer: int, head: int, window: Window | None, stage: bool, theme: str, *,
    _view: View,
) -> go.Figure:  # fmt: skip
    values = amounts(_view)
    return cell_map(
        values, _view.trace.tokens, THEMES[theme], colours="root", top=float(np.nanmax(values)),
        window=window, ticks=LABELS, sizes=STAGE if stage else NORMAL,
    )  # fmt: skip


def _compared(view: View) -> None:
    """The first token by weight and by what it moves, and where the formula comes from."""
    of_weights = dot_product.share_of_first(np.nan_to_num(seen_weights(view)))
    of_moved = dot_product.share_of_first(np.nan_to_num(amounts(view)))
    found = norms(view)
    if not math.isnan(of_weights):
        st.html(
            '<div class="score"><span>The first token takes '
            f"<b>{of_weights:.1%}</b> of the weight of all later queries, and "
            f"<b>{of_moved:.1%}</b> of what is moved: its ‖f(x)‖ is {found[0]:.3g}, the "
            f"median of the others {np.median(found[1:]):.3g}.</span></div>"
        )
    left, right = st.columns(2, gap="small")
    left.latex(r"z_i W_O^h = \sum_{j \le i} \alpha_{ij}\, f(x_j)")
    right.latex(r"f(x) = (x W_V^h + b_V^h)\, W_O^h")
    st.caption(
        "Kobayashi et al. 2020, section 2: a weight alone does not say how much arrives, since a "
        "key may send a short vector. b_O reaches every position and belongs to no head."
    )
    with st.container(horizontal=True):
        save("Weights as CSV", f"{view.at.key}_weights.csv", lambda: seen_weights(view), view)
        save(
            "Value-weighted as CSV",
            f"{view.at.key}_value_weighted.csv",
            lambda: amounts(view),
            view,
        )


def _next_token(view: View) -> None:
    """The tokens that the head, all by itself, makes likelier and less likely."""
    at = f"{escaped(view.trace.tokens[view.token])} ({view.token})"
    V = view.model.config.vocab_size
    caption(
        f"What this head says of the token after {at}",
        f"its direct effect on the logits, against the mean over all {V:,} tokens.",
    )
    multiply_adds = float(view.about.n_parameters) * view.trace.n_tokens
    if not may_start(
        f"effect {view.trace_key} {view.token}", multiply_adds, "Compute",
        "This runs the whole model once more on a long text.",
    ):  # fmt: skip
        return
    found, _ = results(
        f"effect {view.trace_key} {view.at.key} {view.token}", partial(_effect, view), total=1,
        what="heads", lane="effect",
    )  # fmt: skip
    if not found:
        return
    ids, values = found[0]
    n = min(PUSHED, V // 2)
    for column, name, ends in zip(
        st.columns(2, gap="medium"), ("raised", "lowered"), (slice(n), slice(-1, -n - 1, -1)),
        strict=True,
    ):  # fmt: skip
        with column:
            _pushed(view, name, ids[ends], values[ends])
    st.caption(
        "(z W_O^h) through the last LayerNorm, at the scale of this run, and W_U (Elhage et al. "
        "2021). A number added to all logits changes no probability, so the mean is taken off. "
        "What later layers make of the head's output is not in it, and they may undo it."
    )
    download_table(
        "direct_effect.csv", ["token id", "token", "direct effect on the logit"],
        [[i, view.model.read([i])[0].label, value] for i, value in zip(ids, values, strict=True)],
        label="Effects as CSV",
    )  # fmt: skip


def _effect(view: View, report: Reporter) -> Iterator[tuple[list[int], list[float]]]:
    """The tokens that are raised most and lowered most, SAVED of each, and by how much."""
    found = logit_attribution.head_effect(
        view.model, view.trace, view.layer, view.head, position=view.token, on_progress=report
    )
    found = found - found.mean()
    order = np.argsort(-found, kind="stable")
    ends = np.concatenate([order[:SAVED], order[max(SAVED, len(order) - SAVED) :]])
    yield ends.tolist(), found[ends].tolist()


def _pushed(view: View, name: str, ids: list[int], values: list[float]) -> None:
    labels = [view.model.read([i])[0].label for i in ids]
    caption(f"{name.capitalize()} most", "change of the logit, in nats against the mean.")
    chart(
        pushes(labels, values, view.theme, sizes=view.sizes),
        key=f"values_{name}", height=pushes_height(len(ids)), name=f"{name}-most",
        alt=f"Tokens {name} most: "
        + ", ".join(f"{t} {v:+.3f}" for t, v in zip(labels, values, strict=True)),
    )  # fmt: skip
