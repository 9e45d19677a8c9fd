"""The “Why this weight” tab: one weight step by step, from q and k to the softmax."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from mha_viz.analysis import dot_product
from mha_viz.analysis.dot_product import DotProduct, Row
from mha_viz.app.pages.head import cells
from mha_viz.app.pages.head.maps import (
    download_map,
    explain_maps,
    masked,
    masked_pattern,
    square_map,
)
from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.caption import caption, metrics
from mha_viz.app.widgets.chart import chart
from mha_viz.app.widgets.choices import segmented_control
from mha_viz.app.widgets.download_buttons import download_table
from mha_viz.app.widgets.recipes import recipe
from mha_viz.app.widgets.token_strip import token_strip
from mha_viz.export import Drawn, Given, Table, columns_data, rows_data
from mha_viz.figures.cells import MAX_TICKS
from mha_viz.figures.dot_product import dot_product_figure
from mha_viz.figures.softmax_steps import SoftmaxRow, height, softmax_steps
from mha_viz.figures.text import with_minus
from mha_viz.figures.theme import TextSizes, Theme
from mha_viz.trace import Array, Trace

ORDERS = ["by dimension", "by magnitude"]
N_KEYS = 8  # in the drawing of the softmax
N_LARGEST = 5  # products whose sum is named
MAPS = {
    "scores": (
        "1. Scores",
        "scale · q · k for every query (row) and key (column). Blue: negative. Orange: positive.",
    ),
    "masked": ("2. Masked", "The same scores. Keys after the query are masked: −∞, drawn blank."),
    "weights": ("3. Softmax", "exp(score) divided by the sum of its row. Colour: √ weight."),
}

TITLES = {"scores": "Scores", "masked": "Masked scores", "weights": "Weights"}
CODE = {
    "scores": "dot_product.scores(trace, layer, head)",
    "masked": "masked(dot_product.scores(trace, layer, head))",
    "weights": "masked(trace.pattern(layer, head))",
}


def show(view: View) -> None:
    """The weight of one query on one key, and all scores and weights of the selected head."""
    token_strip(view)
    row = dot_product.softmax_row(view.trace, view.layer, view.head, view.token)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        query = cells.query_input(view)
        key = cells.key_input(view, row.strongest(1)[0])
        _pair(view, row, key)
    product = dot_product.dot_product(view.trace, view.layer, view.head, query, key)
    left, right = st.columns([2, 1], gap="medium")
    with left:
        st.fragment(_product)(view, product, query, key)
    with right:
        _softmax(view, row, key)
    _formula(product, row, key)
    _maps(view)
    maps = {f"why_{name}": partial(_values, view, name) for name in MAPS}
    cells.select_on_click(view, maps, key=key, bars=["why_softmax"])


def _pair(view: View, row: Row, key: int) -> None:
    """The pair of tokens, its score, its weight and the rank of that weight."""
    score = with_minus(f"{row.scores[key]:.3f}")
    if key > row.query:
        result = f"score {score}, but the key comes after the query: masked, weight <b>0</b>."
    else:
        rank = int((row.weights > row.weights[key]).sum()) + 1
        n_keys = row.query + 1
        of_keys = f"rank {rank:,} of {n_keys:,} keys" if n_keys > 1 else "the only key"
        result = f"score {score}, weight <b>{row.weights[key]:.4f}</b>, {of_keys}."
    pair = f"{cells.token_html(view, row.query)} on {cells.token_html(view, key)}"
    metrics(f"{pair}: {result}")


def _product(view: View, product: DotProduct, query: int, key: int) -> None:
    """q, k and their products as strips, and the running sum of the products."""
    by = segmented_control("Order of elements", ORDERS, ORDERS[0], "elements", show_label=False)
    largest = _largest(product)
    top, top_product = (np.abs(x).max() for x in ([product.q, product.k], product.products))
    caption(
        "Element by element",
        f"Each column is one of d_h = {len(product.q)} elements. Blue: negative. Orange: positive. "
        f"Colours: ±{top:.3g} for q and k, ±{top_product:.3g} for q × k. Line: running sum of the "
        f"products; {largest}.",
    )
    code = "dot_product.dot_product(trace, layer, head, position, key)"
    chart(
        recipe(
            view,
            _draw_product,
            position=query,
            key=key,
            by_size=by == ORDERS[1],
            product=Given(product, code),
        ),
        key="why_product",
        height=390,
        name="Dot product",
        alt=f"q at position {query} times k at position {key}, {by}: the sum is "
        f"{product.total:.3f}; {largest}.",
    )
    table = _draw_product(product, by == ORDERS[1], view.theme, view.sizes)[1].table()
    download_table("dot_product.csv", *table, label="Download elements (CSV)")


def _draw_product(product: DotProduct, by_size: bool, theme: Theme, sizes: TextSizes) -> Drawn:
    order = product.order(by_size=by_size)
    products = product.products[order]
    figure = dot_product_figure(product.q, product.k, order.tolist(), theme, sizes=sizes)
    data = columns_data(
        element=order,
        q=product.q[order],
        k=product.k[order],
        q_times_k=products,
        running_sum=np.cumsum(products),
    )
    return figure, data


def _largest(product: DotProduct) -> str:
    n = min(N_LARGEST, len(product.q))
    total = product.products[product.order(by_size=True)[:n]].sum()
    text = f"the {n} products of largest magnitude add up to {total:.2f} of {product.total:.2f}"
    return with_minus(text)


def _softmax(view: View, row: Row, key: int) -> None:
    """The query's softmax, key by key; a click on a bar selects its key."""
    caption(
        "Softmax of this query",
        "One row per key, largest weight first. Orange: selected key. "
        f"max = {with_minus(f'{row.largest:.3f}')}, the largest score.",
    )
    rows = _softmax_rows(view.trace.tokens, row, key)
    table = _softmax_table(view.trace.tokens, row)
    code = "dot_product.softmax_row(trace, layer, head, position)"
    chart(
        recipe(view, _draw_softmax, key=key, row=Given(row, code)),
        key="why_softmax",
        height=height(len(rows)),
        name="Softmax of one query",
        alt="; ".join(
            f"{step.label}: score {step.score:.3f}, weight {step.weight:.4f}"
            for step in rows
            if step.score is not None
        ),
    )
    download_table("softmax_row.csv", *table, label="Download row (CSV)")


def _draw_softmax(trace: Trace, row: Row, key: int, theme: Theme, sizes: TextSizes) -> Drawn:
    rows = _softmax_rows(trace.tokens, row, key)
    figure = softmax_steps(rows, theme, selected=key, sizes=sizes)
    data = rows_data(*_softmax_table(trace.tokens, row))
    return figure, data


def _softmax_table(tokens: Sequence[str], row: Row) -> Table:
    exps, weights = row.exps, row.weights
    rows: list[list[Any]] = [
        [key, token, float(row.scores[key]), float(exps[key]), float(weights[key]), key > row.query]
        for key, token in enumerate(tokens)
    ]
    return ["key", "token", "score", "exp(score - max)", "weight", "masked"], rows


def _softmax_rows(tokens: Sequence[str], row: Row, key: int) -> list[SoftmaxRow]:
    """The strongest keys, the selected one, all others together, and the sum."""
    scores, exps, weights = row.scores, row.exps, row.weights
    shown = row.strongest(N_KEYS, also=key)
    rows = [
        SoftmaxRow(tokens[j], j, float(scores[j]), float(exps[j]), float(weights[j]), j > row.query)
        for j in shown
    ]
    others = [j for j in range(row.query + 1) if j not in shown]
    if others:
        exp, weight = float(exps[others].sum()), float(weights[others].sum())
        rows.append(SoftmaxRow(f"{len(others)} more", None, None, exp, weight))
    return [*rows, SoftmaxRow("sum", None, None, float(exps.sum()), 1.0)]


def _formula(product: DotProduct, row: Row, key: int) -> None:
    """The formulas of score and weight, and both with the numbers of this pair."""
    d_h = len(product.q)
    standard = np.isclose(product.scale, d_h**-0.5)
    scale = rf"\tfrac{{1}}{{\sqrt{{{d_h}}}}}" if standard else f"{product.scale:.4g}"
    pair = rf"{{{row.query},{key}}}"
    formulas = [
        r"s_{ij} = \frac{q_i \cdot k_j}{\sqrt{d_h}}",
        r"\alpha_{ij} = \frac{e^{s_{ij}}}{\sum_{j' \le i} e^{s_{ij'}}}",
        rf"s_{pair} = {product.total:.3f} \cdot {scale} = {product.score:.3f}",
        rf"\alpha_{pair} = {_weight_in_numbers(row, key)}",
    ]
    for column, formula in zip(st.columns([4, 5, 7, 8], gap="small"), formulas, strict=True):
        column.latex(formula)
    scaling = "" if standard else f" This layer scales by {product.scale:.4g} instead of 1 / √d_h."
    explained.note(
        "Vaswani et al. 2017, sections 3.2.1 and 3.2.3 (mask). The row's maximum is subtracted "
        f"before the exponential; the weights stay the same.{scaling}"
    )


def _weight_in_numbers(row: Row, key: int) -> str:
    if key > row.query:
        return rf"\frac{{e^{{-\infty}}}}{{{row.exps.sum():.4f}}} = 0"
    exp = rf"e^{{{row.scores[key]:.3f} - ({row.largest:.3f})}}"
    return rf"\frac{{{exp}}}{{{row.exps.sum():.4f}}} = {row.weights[key]:.4f}"


def _maps(view: View) -> None:
    """All pairs of the selected head: scores, masked scores, weights."""
    for column, (name, (title, text)) in zip(st.columns(3, gap="small"), MAPS.items(), strict=True):
        with column:
            caption(title, text)
            _map(view, name)
    explain_maps(view)
    with st.container(horizontal=True):
        download_map(view, "Download scores (CSV)", "scores", lambda: _values(view, "scores"))
        download_map(view, "Download weights (CSV)", "weights", lambda: _values(view, "weights"))


def _map(view: View, name: str) -> None:
    """One of MAPS."""
    drawn, alt = Given(_values(view, name), CODE[name], __name__), _alt(view, name)
    title = f"{TITLES[name]} of {view.at.label}"
    if name == "weights":
        square_map(view, drawn, key=f"why_{name}", name=title, alt=alt, ticks=MAX_TICKS)
        return
    scores = "dot_product.scores(trace, layer, head)"
    square_map(
        view,
        drawn,
        key=f"why_{name}",
        name=title,
        alt=alt,
        array="scores",
        value="score",
        colours="signed",
        top=Given(
            float(np.abs(_values(view, "scores")).max()), f"float(abs({scores}).max())", __name__
        ),
        ticks=MAX_TICKS,
    )


def _values(view: View, name: str) -> Array:
    """`[T, T]`: what the map of that name draws."""
    if name == "weights":
        return masked_pattern(view)
    scores = _scores(view.trace_key, view.layer, view.head, _view=view)
    return masked(scores) if name == "masked" else scores


@st.cache_resource(max_entries=8, show_spinner=False)
def _scores(trace_key: str, layer: int, head: int, *, _view: View) -> Array:
    del trace_key  # names the scores in the cache, with the head
    scores = dot_product.scores(_view.trace, layer, head)
    scores.setflags(write=False)
    return scores


def _alt(view: View, name: str) -> str:
    values = _values(view, name)
    T = len(values)
    if name == "weights":
        return f"Weights of {view.at.label}, {T} queries by {T} keys; each row adds up to 1."
    title = "Masked scores" if name == "masked" else "Scores of every pair"
    low, high = np.nanmin(values), np.nanmax(values)
    return f"{title}, {T} queries by {T} keys, from {low:.2f} to {high:.2f}."
