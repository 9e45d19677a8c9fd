"""The Sink part: a head that rests on the first token, drawn so that one sees what else it does."""

import math
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from mha_viz.analysis import dot_product
from mha_viz.app.pages.head import cells, values
from mha_viz.app.pages.head.maps import LABELS, only_seen, part_shown, save
from mha_viz.app.view import View
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.chart import square
from mha_viz.app.widgets.choices import segmented_control
from mha_viz.app.widgets.tables import facts
from mha_viz.app.widgets.token_strip import token_strip
from mha_viz.app.work import models
from mha_viz.figures.cells import Colours, cell_map
from mha_viz.trace import Array


@dataclass(frozen=True, slots=True)
class Way:
    """A way to draw the pattern: its file, its caption, and what becomes of the first token."""

    name: str
    words: str
    first: str


WAYS = {
    "raw": Way("raw", "the weights as they are; each row adds up to 1; colour = √.", "shown"),
    "first token hidden": Way(
        "hidden", "the weights as they are, without the first column; colour = √. Rows no longer "
        "add up to 1.", "hidden",
    ),
    "hidden, renormalised": Way(
        "renormalised", "A_ij / (1 − A_i0): what is left of each row adds up to 1 again; colour = "
        "√. It magnifies rows that rest almost wholly on the first token.", "hidden",
    ),
    "log scale": Way(
        "log", "the weights as they are; colour = log₁₀, four decades down from 1: faint weights "
        "show, and so do those that hardly count.", "shown",
    ),
    "value-weighted": Way(
        "value_weighted", "‖α f(x)‖, each weight times the norm of what its key sends; colour = √.",
        "weighed",
    ),
}  # fmt: skip


def show(view: View) -> None:
    """The pattern in one of five ways, how much rests on the first token, and why it does."""
    token_strip(view)
    name = segmented_control("Drawn as", list(WAYS), "raw", "sink_as")
    left, right = st.columns([5, 4], gap="medium")
    with left:
        _picture(view, name)
    with right:
        _shares(view, name)
        _why()
    cells.picks(view, {"sink_map": lambda: _values(view, name)})


def _picture(view: View, name: str) -> None:
    way = WAYS[name]
    caption(f"{view.at.label}, {name}", way.words)
    found = _values(view, name)
    if np.isnan(found).all():
        st.info("The first token is all there is: type a second one.")
        return
    square(_figure(view, name, found), "sink_map", _alt(view, name, found))
    part_shown(view)
    save("Numbers as CSV", f"{view.at.key}_{way.name}.csv", lambda: _values(view, name), view)


def _values(view: View, name: str) -> Array:
    """`[T, T]`: what this way draws, NaN where it draws nothing."""
    if name == "value-weighted":
        return values.amounts(view)
    weights = models.pattern(view.trace_key, view.layer, view.head, view.trace)
    if WAYS[name].first == "hidden":
        weights = dot_product.without_first(weights, renormalised=name == "hidden, renormalised")
    return only_seen(weights)


def _figure(view: View, name: str, found: Array) -> go.Figure:
    colours: Colours = "log" if name == "log scale" else "root"
    top = float(np.nanmax(found)) if name == "value-weighted" else 1.0
    return cell_map(
        found, view.trace.tokens, view.theme, colours=colours, top=top, window=view.window,
        ticks=LABELS, sizes=view.sizes,
    )  # fmt: skip


def _alt(view: View, name: str, found: Array) -> str:
    query, key = np.unravel_index(np.nanargmax(found), found.shape)
    tokens = view.trace.tokens
    return (
        f"Pattern of {view.at.label}, {name}: the largest of {len(found)} by {len(found)} is "
        f"{found[query, key]:.3g}, from {tokens[query]} ({query}) to {tokens[key]} ({key})."
    )


def _shares(view: View, name: str) -> None:
    """How much rests on the first token, and how much of it this picture hides."""
    pattern = models.pattern(view.trace_key, view.layer, view.head, view.trace)
    share = dot_product.share_of_first(pattern)
    if math.isnan(share):
        st.caption("With a single token there is no share to speak of.")
        return
    moved = dot_product.share_of_first(np.nan_to_num(values.amounts(view)))
    norms = values.norms(view)
    hidden = f"{share:.1%} of the attention" if WAYS[name].first == "hidden" else "nothing"
    last = view.trace.n_tokens - 1
    facts(
        {
            "hidden here": hidden,
            "on the first token": f"{share:.1%} of the weight of queries 1 to {last:,}, mean A_i0",
            "this query": f"{view.trace.tokens[view.token]} ({view.token}) gives it "
            + _small(float(pattern[view.token, 0])),
            "of what is moved": f"{moved:.1%}, by ‖α f(x)‖",
            "‖f(x)‖": f"{norms[0]:.3g} of the first token, {np.median(norms[1:]):.3g} median of "
            "the others",
        }
    )


def _why() -> None:
    """Why the first token, in a few sentences."""
    st.markdown(
        "**Why a head rests there.** The softmax has to give out a whole 1 for every query, also "
        "when the head finds nothing to fetch. A model learns to put the rest where it does "
        "least: on the first token, the only one that every later query sees under the causal "
        "mask (Xiao et al. 2023, section 3). What a resting place sends is often short, so a "
        "strong column may move little (Kobayashi et al. 2020); the two shares above say whether "
        "that holds here."
    )
    st.markdown(
        "It is the place rather than the word: whatever stands first takes it over. So a strong "
        "first column does not say that the first word matters, and to hide it changes the "
        "picture, not the model. Query 0 is left out of the shares, since it has no other choice."
    )


def _small(weight: float) -> str:
    return f"{weight:.3f}" if weight >= 0.0005 or not weight else "<0.001"
