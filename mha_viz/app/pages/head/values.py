"""The Values tab: value-weighted attention, and the head's direct effect on the next token."""

import math
from collections.abc import Iterator
from functools import partial

import numpy as np
import streamlit as st

from mha_viz.analysis import dot_product, logit_attribution
from mha_viz.app.messages import escaped
from mha_viz.app.pages.head import cells
from mha_viz.app.pages.head.maps import (
    download_map,
    explain_maps,
    masked_pattern,
    square_map,
)
from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.caption import caption, metrics, without_special
from mha_viz.app.widgets.chart import chart
from mha_viz.app.widgets.download_buttons import download_table
from mha_viz.app.widgets.recipes import recipe
from mha_viz.app.widgets.token_strip import token_strip
from mha_viz.app.work.progress import Reporter, may_start, results
from mha_viz.export import Drawn, Given, columns_data
from mha_viz.figures.logit_effects import height, logit_effects
from mha_viz.figures.theme import TextSizes, Theme
from mha_viz.model import Model
from mha_viz.trace import Array

N_SHOWN = 8  # tokens raised, and as many lowered
EFFECTS = "logit_attribution.head_effect(model, trace, layer, head, position=position)"
N_DOWNLOADED = 200  # likewise, in the file


def show(view: View) -> None:
    """The pattern beside the value-weighted pattern, and the effect on the next token."""
    token_strip(view)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        query = cells.query_input(view)
        key = cells.key_input(view, int(masked_pattern(view)[query, : query + 1].argmax()))
        _pair(view, query, key)
    left, right = st.columns(2, gap="small")
    with left:
        _weights_map(view)
    with right:
        _value_weighted_map(view)
    explain_maps(view)
    _first_token_shares(view)
    _formula(view)
    cells.select_on_click(
        view,
        {
            "values_weights": lambda: masked_pattern(view),
            "value_weighted": lambda: value_weighted(view),
        },
        key=key,
    )
    _direct_effect(view)


def norms(view: View) -> Array:
    """`[T]`: the norms ‖f(x_j)‖ of the selected head's transformed values."""
    return _norms(view.trace_key, view.layer, view.head, _view=view)


@st.cache_resource(max_entries=32, show_spinner=False)
def _norms(trace_key: str, layer: int, head: int, *, _view: View) -> Array:
    del trace_key  # names the norms in the cache, with the head
    return logit_attribution.value_norms(_view.model, _view.trace, layer, head)


def value_weighted(view: View) -> Array:
    """`[T, T]`: ‖α_ij f(x_j)‖ of the selected head, NaN where the key comes after the query."""
    out: Array = masked_pattern(view) * norms(view)[None, :]
    return out


def given_value_weighted(values: Array) -> Given:
    """The value-weighted attention as scripts compute it."""
    norms = "logit_attribution.value_norms(model, trace, layer, head)"
    return Given(values, f"masked(trace.pattern(layer, head)) * {norms}", __name__)


def _pair(view: View, query: int, key: int) -> None:
    if key > query:
        result = "masked, contributes nothing."
    else:
        weight, norm = masked_pattern(view)[query, key], norms(view)[key]
        result = f"weight {weight:.4f} × norm {norm:.3f} = <b>{weight * norm:.4f}</b>."
    pair = f"{cells.token_html(view, query)} from {cells.token_html(view, key)}"
    metrics(f"{pair}: {result}")


def _weights_map(view: View) -> None:
    caption(
        "Weights α",
        "Each row shows what one token looks at; a row adds up to 1. Colour: √ weight.",
    )
    square_map(
        view,
        Given(masked_pattern(view), "masked(trace.pattern(layer, head))", __name__),
        key="values_weights",
        name=f"Weights of {view.at.label}",
        alt=f"Weights of {view.at.label}.",
    )


def _value_weighted_map(view: View) -> None:
    values = value_weighted(view)
    top = float(np.nanmax(values))
    caption(
        "Value-weighted ‖α f(x)‖",
        f"Each weight times ‖f(x)‖ of its key. Colour: √, up to {top:.3g}.",
    )
    square_map(
        view,
        given_value_weighted(values),
        key="value_weighted",
        name=f"Value-weighted attention of {view.at.label}",
        alt=f"Value-weighted attention of {view.at.label}: the largest is {top:.3g}.",
        array="value-weighted",
        value="weight times norm",
        top=Given(top, "float(np.nanmax(values))"),
    )


def _first_token_shares(view: View) -> None:
    """The first token's share of the weights and of the value-weighted attention."""
    weight_share, value_share = (
        dot_product.share_of_first(np.nan_to_num(amounts), view.trace.text_queries)
        for amounts in (masked_pattern(view), value_weighted(view))
    )
    first, *others = norms(view)
    if not math.isnan(weight_share):
        metrics(
            f"Over all later queries{without_special(view)}, the first token gets "
            f"<b>{weight_share:.1%}</b> of the weight and <b>{value_share:.1%}</b> of ‖α f(x)‖. "
            f"Its ‖f(x)‖ is {first:.3g}; the median of the others is {np.median(others):.3g}."
        )


def _formula(view: View) -> None:
    """Where ‖α f(x)‖ comes from, and the data of both maps."""
    left, right = st.columns(2, gap="small")
    left.latex(r"z_i W_O^h = \sum_{j \le i} \alpha_{ij}\, f(x_j)")
    right.latex(r"f(x) = (x W_V^h + b_V^h)\, W_O^h")
    explained.note(
        "Kobayashi et al. 2020, sections 2 and 3. A weight alone does not say how much a key "
        "contributes, because its f(x) may be short. b_O is added at every position and belongs to "
        "no head."
    )
    with st.container(horizontal=True):
        download_map(view, "Download weights (CSV)", "weights", lambda: masked_pattern(view))
        download_map(
            view, "Download value-weighted (CSV)", "value_weighted", lambda: value_weighted(view)
        )


def _direct_effect(view: View) -> None:
    """The tokens that the head, by itself, makes more and less likely to come next."""
    token = f"{escaped(view.trace.tokens[view.token])} ({view.token})"
    V = view.model.config.vocab_size
    caption(
        f"How this head shifts the prediction after {token}",
        f"Its direct effect on each logit, minus the mean over all {V:,} tokens.",
    )
    effects = _computed_effects(view)
    if effects is None:
        return
    ids, values = effects
    labels = [token.label for token in view.model.read(ids)]
    n = min(N_SHOWN, V // 2)
    left, right = st.columns(2, gap="medium")
    with left:
        _strongest_effects(view, "raised", ids[:n], values[:n])
    with right:
        _strongest_effects(view, "lowered", ids[: -n - 1 : -1], values[: -n - 1 : -1])
    explained.note(
        "z W_O^h, passed through the last LayerNorm (with its scale in this run) and W_U (Elhage "
        "et al. 2021). Adding a constant to all logits does not change the probabilities, so the "
        "mean is subtracted. Effects through later layers are not included; those layers may "
        "amplify or cancel this one."
    )
    header = ["token id", "token", "direct effect on the logit"]
    rows = list(zip(ids, labels, values, strict=True))
    download_table("direct_effect.csv", header, rows, label="Download effects (CSV)")


def _computed_effects(view: View) -> tuple[list[int], list[float]] | None:
    """The result of `_effects`, computed at once for a short text, otherwise after a click."""
    name = f"effect {view.trace_key} {view.token}"
    multiply_adds = float(view.about.n_parameters) * view.trace.n_tokens
    cost = "Computing this runs the whole model once more, which takes a while."
    if not may_start(name, multiply_adds, "Compute", cost):
        return None
    name, work = f"{name} {view.at.key}", partial(_effects, view)
    found, _ = results(name, work, total=1, what="heads", lane="effect")
    return found[0] if found else None


def _effects(view: View, report: Reporter) -> Iterator[tuple[list[int], list[float]]]:
    """The N_DOWNLOADED tokens raised most and as many lowered most, and their effects in order."""
    effects = logit_attribution.head_effect(
        view.model, view.trace, view.layer, view.head, position=view.token, on_progress=report
    )
    effects = effects - effects.mean()
    order = np.argsort(-effects, kind="stable")
    ends = np.r_[order[:N_DOWNLOADED], order[max(N_DOWNLOADED, len(order) - N_DOWNLOADED) :]]
    yield ends.tolist(), effects[ends].tolist()


def _strongest_effects(view: View, name: str, ids: list[int], values: list[float]) -> None:
    labels = [token.label for token in view.model.read(ids)]
    caption(f"{name.capitalize()} most", "Change of the logit in nats, relative to the mean.")
    tokens = ", ".join(f"{t} {v:+.3f}" for t, v in zip(labels, values, strict=True))
    n = len(ids)
    best = f"np.argsort({'-' if name == 'raised' else ''}effects, kind='stable')"
    chart(
        recipe(
            view,
            _draw_effects,
            effects=Given(None, EFFECTS),
            ids=Given(ids, f"{best}[:{n}].tolist()"),
            values=Given(values, "(effects - effects.mean())[ids].tolist()"),
        ),
        key=f"values_{name}",
        height=height(n),
        name=f"Tokens {name} most by {view.at.label}",
        alt=f"Tokens {name} most: {tokens}",
    )


def _draw_effects(
    model: Model, ids: list[int], values: list[float], theme: Theme, sizes: TextSizes
) -> Drawn:
    labels = [token.label for token in model.read(ids)]
    figure = logit_effects(labels, values, theme, sizes=sizes)
    data = columns_data(token_id=ids, token=labels, direct_effect_on_the_logit=values)
    return figure, data
