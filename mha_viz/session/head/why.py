"""The Why part: one weight taken apart, from q and k to the softmax."""

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from mha_viz import explain
from mha_viz.explain import DotProduct, Row
from mha_viz.figures.cells import cell_map
from mha_viz.figures.dot_product import dot_product_figure
from mha_viz.figures.heatmap import Window
from mha_viz.figures.ladder import Rung, ladder, ladder_height
from mha_viz.figures.theme import NORMAL, STAGE, THEMES
from mha_viz.session import attention, models
from mha_viz.session.attention import CONFIG, caption
from mha_viz.session.head import cells
from mha_viz.session.messages import escaped
from mha_viz.session.numbers import download, download_table
from mha_viz.session.variants.common import one_of, square
from mha_viz.session.view import View
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
    attention.strip(view)
    row = explain.softmax_row(view.trace, view.layer, view.head, view.token)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        query = cells.query_input(view)
        key = cells.key_input(view, row.strongest(1)[0])
        found = explain.dot_product(view.trace, view.layer, view.head, query, key)
        _sentence(view, row, key)
    left, right = st.columns([2, 1], gap="medium")
    with left:
        st.fragment(_product)(view, found, query, key)
    with right:
        _ladder(view, row, key)
    _formula(view, found, row, key)
    _path(view)
    cells.picks(
        view, {f"why_{name}": _values(view, name) for name in MAPS}, key=key, rungs=["why_ladder"]
    )


def _sentence(view: View, row: Row, key: int) -> None:
    """What is taken apart, in words: the pair, its score and its weight."""
    asks, asked = _named(view, row.query), _named(view, key)
    score = _signed(f"{row.scores[key]:.3f}")
    if key > row.query:
        what = f"score {score}, but the key lies beyond the query: masked, weight <b>0</b>."
    else:
        rank = int((row.weights > row.weights[key]).sum()) + 1
        n = row.query + 1
        place = f"rank {rank} of {n} keys" if n > 1 else "its only key"
        what = f"score {score}, weight <b>{row.weights[key]:.4f}</b>, {place}."
    st.html(f'<div class="score why"><span>{asks} on {asked}: {what}</span></div>')


def _product(view: View, found: DotProduct, query: int, key: int) -> None:
    """Strips of q, k and their products, and the sum as it grows."""
    order = one_of("Elements", ORDERS, ORDERS[0], "elements")
    top = max(np.abs(found.q).max(), np.abs(found.k).max())
    caption(
        "Element by element",
        f"a cell is one of d_h = {len(found.q)} numbers, blue below 0, orange above; q and k reach "
        f"from −{top:.3g} to {top:.3g}, q × k from −{np.abs(found.products).max():.3g} to "
        f"{np.abs(found.products).max():.3g}. Bars add up to the line; {_largest(found)}.",
    )
    at = found.order(by_size=order == ORDERS[1])
    st.plotly_chart(
        dot_product_figure(found.q, found.k, at.tolist(), view.theme, sizes=view.sizes),
        key="why_product", theme=None, config=CONFIG, height=390,
        alt=f"q of position {query} times k of position {key}, {order}: the sum is "
        f"{found.total:.3f}; {_largest(found)}.",
    )  # fmt: skip
    products, running = found.products[at], np.cumsum(found.products[at])
    download_table(
        "dot_product.csv", ["element", "q", "k", "q times k", "sum so far"],
        [
            [int(d), float(found.q[d]), float(found.k[d]), float(p), float(s)]
            for d, p, s in zip(at, products, running, strict=True)
        ],
        label="Elements as CSV",
    )  # fmt: skip


def _largest(found: DotProduct) -> str:
    n = min(LARGEST, len(found.q))
    first = found.products[found.order(by_size=True)[:n]].sum()
    return _signed(f"the {n} largest products add up to {first:.2f} of {found.total:.2f}")


def _ladder(view: View, row: Row, key: int) -> None:
    """The query's softmax as rungs; a press on one chooses its key."""
    caption(
        "The softmax of this query",
        f"its strongest keys, the chosen one orange; max = {_signed(f'{row.largest:.3f}')}.",
    )
    rungs = _rungs(view, row, key)
    st.plotly_chart(
        ladder(rungs, view.theme, chosen=key, sizes=view.sizes),
        key="why_ladder", theme=None, config=CONFIG, height=ladder_height(len(rungs)),
        alt="; ".join(
            f"{r.label}: score {r.score:.3f}, weight {r.weight:.4f}"
            for r in rungs if r.score is not None
        ),
    )  # fmt: skip
    tokens = view.trace.tokens
    download_table(
        "softmax_row.csv", ["key", "token", "score", "exp(score - max)", "weight", "masked"],
        [
            [j, tokens[j], float(row.scores[j]), float(row.exps[j]), float(row.weights[j]),
             j > row.query]
            for j in range(len(tokens))
        ],
        label="Row as CSV",
    )  # fmt: skip


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
    left, right = st.columns(2, gap="medium")
    d_h = len(found.q)
    usual = np.isclose(found.scale, d_h**-0.5)
    scale = rf"\tfrac{{1}}{{\sqrt{{{d_h}}}}}" if usual else f"{found.scale:.4g}"
    with left:
        st.latex(
            r"s_{ij} = \frac{q_i \cdot k_j}{\sqrt{d_h}}\qquad "
            r"\alpha_{ij} = \frac{e^{s_{ij}}}{\sum_{j' \le i} e^{s_{ij'}}}"
        )
    with right:
        st.latex(
            rf"s_{{{row.query},{key}}} = {found.total:.3f} \cdot {scale} = {found.score:.3f}\qquad "
            + _weight_in_numbers(row, key)
        )
    note = "" if usual else f" This layer multiplies by {found.scale:.4g} in place of 1 / √d_h."
    st.caption(
        f"Vaswani et al. 2017, section 3.2.1; the mask: section 3.2.3. The largest score is taken "
        f"off each before the exponential, which changes no weight.{note}"
    )


def _weight_in_numbers(row: Row, key: int) -> str:
    name = rf"\alpha_{{{row.query},{key}}}"
    if key > row.query:
        return rf"{name} = \frac{{e^{{-\infty}}}}{{{row.exps.sum():.4f}}} = 0"
    top = rf"e^{{{row.scores[key]:.3f} - ({row.largest:.3f})}}"
    return rf"{name} = \frac{{{top}}}{{{row.exps.sum():.4f}}} = {row.weights[key]:.4f}"


def _path(view: View) -> None:
    """The same cells three times: as scores, under the mask, and as weights."""
    columns = st.columns(3, gap="small")
    for column, (name, (title, words)) in zip(columns, MAPS.items(), strict=True):
        with column:
            caption(title, words)
            square(_map_figure(view, name), f"why_{name}", _alt(view, name))
    attention.zoomed(view)
    with st.container(horizontal=True):
        download(
            f"{view.at}_scores.csv", _scores(view.words, view.layer, view.head, _trace=view.trace),
            rows=view.trace.tokens,
        )  # fmt: skip


def _map_figure(view: View, name: str) -> go.Figure:
    return _map(
        view.words, view.layer, view.head, name, view.window, view.stage, view.theme.name,
        _trace=view.trace,
    )  # fmt: skip


@st.cache_resource(max_entries=24, show_spinner=False)
def _map(
    words: str,
    layer: int,
    head: int,
    name: str,
    window: Window | None,
    stage: bool,
    theme: str,
    *,
    _trace: Trace,
) -> go.Figure:
    whole = _scores(words, layer, head, _trace=_trace)
    if name == "weights":
        values = _only_seen(models.pattern(words, layer, head, _trace))
        colours, top = "root", 1.0
    else:
        values = _only_seen(whole) if name == "masked" else whole
        colours, top = "signed", float(np.abs(whole).max())
    return cell_map(
        values, _trace.tokens, THEMES[theme], colours=colours, top=top, window=window,
        sizes=STAGE if stage else NORMAL,
    )  # fmt: skip


@st.cache_resource(max_entries=8, show_spinner=False)
def _scores(words: str, layer: int, head: int, *, _trace: Trace) -> Array:
    del words  # only tells traces apart
    found = explain.scores(_trace, layer, head)
    found.setflags(write=False)
    return found


def _only_seen(values: Array) -> Array:
    """The values with NaN where a key lies beyond its query."""
    seen: Array = np.where(np.tri(len(values), dtype=np.bool_), values, np.float32(np.nan))
    return seen


def _values(view: View, name: str) -> cells.Values:
    """What a map draws, made when a press on a pooled cell asks for it."""

    def made() -> Array:
        if name == "weights":
            return _only_seen(models.pattern(view.words, view.layer, view.head, view.trace))
        whole = _scores(view.words, view.layer, view.head, _trace=view.trace)
        return _only_seen(whole) if name == "masked" else whole

    return made


def _alt(view: View, name: str) -> str:
    whole = _scores(view.words, view.layer, view.head, _trace=view.trace)
    T = len(whole)
    if name == "weights":
        return f"Weights of {view.at}, {T} queries by {T} keys; each row adds up to 1."
    seen = _only_seen(whole) if name == "masked" else whole
    what = "Scores under the mask" if name == "masked" else "Scores of every pair"
    return f"{what}, {T} queries by {T} keys, from {np.nanmin(seen):.2f} to {np.nanmax(seen):.2f}."


def _named(view: View, position: int) -> str:
    return f"<b>{escaped(view.trace.tokens[position])}</b><sub>{position}</sub>"


def _signed(text: str) -> str:
    return text.replace("-", "−")
