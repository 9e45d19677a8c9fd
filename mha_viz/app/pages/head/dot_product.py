"""The Why part: one weight taken apart, from q and k to the softmax."""

from functools import partial
from typing import Any

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from mha_viz.analysis import dot_product
from mha_viz.analysis.dot_product import DotProduct, Positions, Row
from mha_viz.app.pages.head import cells
from mha_viz.app.pages.head.maps import only_seen, part_shown, save, seen_weights, weight_map
from mha_viz.app.view import View
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.chart import chart, square
from mha_viz.app.widgets.choices import check_link
from mha_viz.app.widgets.download_buttons import download_table
from mha_viz.app.widgets.token_strip import token_strip
from mha_viz.export import Table
from mha_viz.figures.cells import MAX_TICKS, cell_map
from mha_viz.figures.dot_product import dot_product_figure
from mha_viz.figures.ladder import Rung, ladder, ladder_height
from mha_viz.figures.theme import NORMAL, STAGE, THEMES
from mha_viz.figures.window import Window
from mha_viz.trace import Array, Trace

ORDERS = ["by dimension", "by size"]
RUNGS = 8  # keys of the ladder
LARGEST = 5  # products that are added up in a sentence
MAPS = {
    "scores": ("1. Scores", "scale · q · k, of every pair; blue below 0, orange above."),
    "masked": ("2. Masked", "the same; what lies beyond the query is −∞, drawn blank."),
    "weights": ("3. Softmax", "exp of each over the sum of its row; colour = √ weight."),
}


def show(view: View) -> None:
    """The weight of one query on one key, and the way of the whole head to its weights."""
    token_strip(view)
    row = dot_product.softmax_row(view.trace, view.layer, view.head, view.token)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        query = cells.query_input(view)
        key = cells.key_input(view, row.strongest(1)[0])
        found = dot_product.dot_product(view.trace, view.layer, view.head, query, key)
        _sentence(view, row, key)
    left, right = st.columns([2, 1], gap="medium")
    with left:
        st.fragment(_product)(view, found, query, key)
    with right:
        _ladder(view, row, key)
    _formula(view, found, row, key)
    _path(view)
    maps = {f"why_{name}": partial(_values, view, name) for name in MAPS}
    cells.picks(view, maps, key=key, rungs=["why_ladder"])


def _sentence(view: View, row: Row, key: int) -> None:
    """What is taken apart, in words: the pair, its score and its weight."""
    asks, asked = cells.named(view, row.query), cells.named(view, key)
    score = _signed(f"{row.scores[key]:.3f}")
    if key > row.query:
        what = f"score {score}, but the key lies beyond the query: masked, weight <b>0</b>."
    else:
        rank = int((row.weights > row.weights[key]).sum()) + 1
        n = row.query + 1
        place = f"rank {rank:,} of {n:,} keys" if n > 1 else "its only key"
        what = f"score {score}, weight <b>{row.weights[key]:.4f}</b>, {place}."
    st.html(f'<div class="score why"><span>{asks} on {asked}: {what}</span></div>')


def _product(view: View, found: DotProduct, query: int, key: int) -> None:
    """Strips of q, k and their products, and the sum as it grows."""
    order = st.segmented_control(
        "Elements", ORDERS, default=ORDERS[0], key="elements", bind="query-params", required=True,
        label_visibility="collapsed", width="content",
    )  # fmt: skip
    check_link("elements", order)
    top = max(np.abs(found.q).max(), np.abs(found.k).max())
    caption(
        "Element by element",
        f"a cell is one of d_h = {len(found.q)} numbers, blue below 0, orange above; q and k reach "
        f"from −{top:.3g} to {top:.3g}, q × k from −{np.abs(found.products).max():.3g} to "
        f"{np.abs(found.products).max():.3g}. Bars add up to the line; {_largest(found)}.",
    )
    at = found.order(by_size=order == ORDERS[1])
    numbers = _elements(found, at)
    chart(
        dot_product_figure(found.q, found.k, at.tolist(), view.theme, sizes=view.sizes),
        key="why_product", height=390, name="dot-product", table=lambda: numbers,
        alt=f"q of position {query} times k of position {key}, {order}: the sum is "
        f"{found.total:.3f}; {_largest(found)}.",
    )  # fmt: skip
    download_table("dot_product.csv", *numbers, label="Elements as CSV")


def _elements(found: DotProduct, at: Positions) -> Table:
    running = np.cumsum(found.products[at])
    rows: list[list[Any]] = [
        [int(d), float(found.q[d]), float(found.k[d]), float(found.products[d]), float(total)]
        for d, total in zip(at, running, strict=True)
    ]
    return ["element", "q", "k", "q times k", "sum so far"], rows


def _largest(found: DotProduct) -> str:
    n = min(LARGEST, len(found.q))
    first = found.products[found.order(by_size=True)[:n]].sum()
    return _signed(f"the {n} products largest in size add up to {first:.2f} of {found.total:.2f}")


def _ladder(view: View, row: Row, key: int) -> None:
    """The query's softmax as rungs; a press on one chooses its key."""
    caption(
        "The softmax of this query",
        f"its strongest keys, the chosen one orange; max = {_signed(f'{row.largest:.3f}')}.",
    )
    rungs = _rungs(view, row, key)
    numbers = _keys(view, row)
    chart(
        ladder(rungs, view.theme, chosen=key, sizes=view.sizes),
        key="why_ladder", height=ladder_height(len(rungs)), name="softmax", table=lambda: numbers,
        alt="; ".join(
            f"{r.label}: score {r.score:.3f}, weight {r.weight:.4f}"
            for r in rungs if r.score is not None
        ),
    )  # fmt: skip
    download_table("softmax_row.csv", *numbers, label="Row as CSV")


def _keys(view: View, row: Row) -> Table:
    exps, weights = row.exps, row.weights
    rows: list[list[Any]] = [
        [j, token, float(row.scores[j]), float(exps[j]), float(weights[j]), j > row.query]
        for j, token in enumerate(view.trace.tokens)
    ]
    return ["key", "token", "score", "exp(score - max)", "weight", "masked"], rows


def _rungs(view: View, row: Row, key: int) -> list[Rung]:
    exps, weights, tokens = row.exps, row.weights, view.trace.tokens
    shown = row.strongest(RUNGS, also=key)
    rungs = [
        Rung(tokens[j], j, float(row.scores[j]), float(exps[j]), float(weights[j]), j > row.query)
        for j in shown
    ]
    rest = row.query + 1 - sum(j <= row.query for j in shown)
    if rest:
        others = [j for j in range(row.query + 1) if j not in shown]
        rungs.append(
            Rung(
                f"{rest} more", None, None, float(exps[others].sum()), float(weights[others].sum())
            )
        )
    return [*rungs, Rung("sum", None, None, float(exps.sum()), 1.0)]


def _formula(view: View, found: DotProduct, row: Row, key: int) -> None:
    """The formula, and the same with the numbers of this pair."""
    d_h = len(found.q)
    usual = np.isclose(found.scale, d_h**-0.5)
    scale = rf"\tfrac{{1}}{{\sqrt{{{d_h}}}}}" if usual else f"{found.scale:.4g}"
    name = rf"{{{row.query},{key}}}"
    formulas = [
        r"s_{ij} = \frac{q_i \cdot k_j}{\sqrt{d_h}}",
        r"\alpha_{ij} = \frac{e^{s_{ij}}}{\sum_{j' \le i} e^{s_{ij'}}}",
        rf"s_{name} = {found.total:.3f} \cdot {scale} = {found.score:.3f}",
        rf"\alpha_{name} = {_weight_in_numbers(row, key)}",
    ]
    for column, formula in zip(st.columns([4, 5, 7, 8], gap="small"), formulas, strict=True):
        column.latex(formula)
    note = "" if usual else f" This layer multiplies by {found.scale:.4g} in place of 1 / √d_h."
    st.caption(
        f"Vaswani et al. 2017, section 3.2.1; the mask: section 3.2.3. The largest score is taken "
        f"off each before the exponential, which changes no weight.{note}"
    )


def _weight_in_numbers(row: Row, key: int) -> str:
    if key > row.query:
        return rf"\frac{{e^{{-\infty}}}}{{{row.exps.sum():.4f}}} = 0"
    top = rf"e^{{{row.scores[key]:.3f} - ({row.largest:.3f})}}"
    return rf"\frac{{{top}}}{{{row.exps.sum():.4f}}} = {row.weights[key]:.4f}"


def _path(view: View) -> None:
    """The same cells three times: as scores, under the mask, and as weights."""
    columns = st.columns(3, gap="small")
    for column, (name, (title, words)) in zip(columns, MAPS.items(), strict=True):
        with column:
            caption(title, words)
            square(_map_figure(view, name), f"why_{name}", _alt(view, name))
    part_shown(view)
    with st.container(horizontal=True):
        save("Scores as CSV", f"{view.at.key}_scores.csv", lambda: _whole(view), view)
        save("Weights as CSV", f"{view.at.key}_weights.csv", lambda: seen_weights(view), view)


def _map_figure(view: View, name: str) -> go.Figure:
    if name == "weights":
        return weight_map(view, labels=MAX_TICKS)
    return _score_map(
        view.trace_key, view.layer, view.head, name, view.window, view.stage, view.theme.name,
        _trace=view.trace,
    )  # fmt: skip


@st.cache_resource(max_entries=16, show_spinner=False)
def _score_map(
    trace_key: str, layer: int, head: int, name: str, window: Window | None, stage: bool,
    theme: str,
    *, _trace: Trace,
) -> go.Figure:  # fmt: skip
    whole = _scores(trace_key, layer, head, _trace=_trace)
    return cell_map(
        only_seen(whole) if name == "masked" else whole, _trace.tokens, THEMES[theme],
        colours="signed", top=float(np.abs(whole).max()), window=window,
        sizes=STAGE if stage else NORMAL,
    )  # fmt: skip


@st.cache_resource(max_entries=8, show_spinner=False)
def _scores(trace_key: str, layer: int, head: int, *, _trace: Trace) -> Array:
    del trace_key  # only tells traces apart
    found = dot_product.scores(_trace, layer, head)
    found.setflags(write=False)
    return found


def _whole(view: View) -> Array:
    """The scores of every pair."""
    return _scores(view.trace_key, view.layer, view.head, _trace=view.trace)


def _values(view: View, name: str) -> Array:
    """What a map draws."""
    if name == "weights":
        return seen_weights(view)
    return only_seen(_whole(view)) if name == "masked" else _whole(view)


def _alt(view: View, name: str) -> str:
    seen = _values(view, name)
    T = len(seen)
    if name == "weights":
        return f"Weights of {view.at.label}, {T} queries by {T} keys; each row adds up to 1."
    what = "Scores under the mask" if name == "masked" else "Scores of every pair"
    return f"{what}, {T} queries by {T} keys, from {np.nanmin(seen):.2f} to {np.nanmax(seen):.2f}."


def _signed(text: str) -> str:
    return text.replace("-", "−")
