"""The Sink tab: how much a head looks at the first token, and what else it looks at."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st

from mha_viz.analysis import dot_product
from mha_viz.app.pages.head import cells, values
from mha_viz.app.pages.head.maps import download_map, explain_maps, masked, square_map
from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.caption import caption, without_special
from mha_viz.app.widgets.choices import segmented_control
from mha_viz.app.widgets.tables import facts
from mha_viz.app.widgets.token_strip import token_strip
from mha_viz.app.work import models
from mha_viz.export import Given
from mha_viz.trace import Array


@dataclass(frozen=True, slots=True)
class Mode:
    """A way to draw the pattern: its caption, its name in files, and whether key 0 is hidden."""

    text: str
    file_name: str
    hides_first: bool = False


MODES = {
    "raw": Mode("The weights; each row adds up to 1. Colour: √ weight.", "raw"),
    "first token hidden": Mode(
        "The weights without the first column, so rows no longer add up to 1. Colour: √ weight.",
        "hidden",
        hides_first=True,
    ),
    "hidden, renormalised": Mode(
        "A_ij / (1 − A_i0): the remaining weights of each row, scaled to add up to 1. This "
        "magnifies rows with almost all their weight on the first token. Colour: √ weight.",
        "renormalised",
        hides_first=True,
    ),
    "log scale": Mode(
        "The weights. Colour: log₁₀ weight from 0.0001 to 1, which shows small weights too, even "
        "negligible ones.",
        "log",
    ),
    "value-weighted": Mode(
        "‖α f(x)‖: each weight times the norm of the key's transformed value f(x) = v W_O. Colour: "
        "√ of ‖α f(x)‖.",
        "value_weighted",
    ),
}
WHY_THE_FIRST_TOKEN = (
    "**Why the first token?** Softmax must hand out a total weight of 1 for every query, even when "
    "the head finds nothing useful. Models learn to put the surplus on the first token, the only "
    "one every query can see (Xiao et al. 2023, section 3). Its value vector is often short, so a "
    "strong column may contribute little (Kobayashi et al. 2020); compare the two shares above."
)
HOW_TO_READ_IT = (
    "Position matters here, not meaning: whichever token comes first becomes the sink. A strong "
    "first column does not make the first word important. Hiding it changes only the picture. "
    "Query 0 is excluded because it can only look at itself."
)


def show(view: View) -> None:
    """The pattern in one of five modes, the share of the first token, and why there is a sink."""
    token_strip(view)
    mode = segmented_control("Show as", list(MODES), "raw", "sink_as")
    left, right = st.columns([5, 4], gap="medium")
    with left:
        _map(view, mode)
    with right:
        _shares(view, mode)
        explained.paragraph(WHY_THE_FIRST_TOKEN)
        explained.paragraph(HOW_TO_READ_IT)
    cells.select_on_click(view, {"sink_map": lambda: _values(view, mode)})


def _map(view: View, mode: str) -> None:
    caption(f"{view.at.label}, {mode}", MODES[mode].text)
    drawn = _values(view, mode)
    if np.isnan(drawn).all():
        st.info("The first token is the only one. Type a longer text.")
        return
    square_map(view, _given(mode, drawn), alt=_alt(view, mode, drawn), **_look(view, mode))
    explain_maps(view)
    download_map(view, "Download CSV", MODES[mode].file_name, lambda: _values(view, mode))


def _values(view: View, mode: str) -> Array:
    """`[T, T]`: what this mode draws, NaN for empty cells."""
    if mode == "value-weighted":
        return values.value_weighted(view)
    weights = _pattern(view)
    if MODES[mode].hides_first:
        weights = dot_product.without_first(weights, renormalised=mode == "hidden, renormalised")
    return masked(weights)


def _pattern(view: View) -> Array:
    return models.pattern(view.trace_key, view.layer, view.head, view.trace)


def _given(mode: str, drawn: Array) -> Given:
    """What this mode draws, as scripts compute it."""
    if mode == "value-weighted":
        return values.given_value_weighted(drawn)
    code = "trace.pattern(layer, head)"
    if MODES[mode].hides_first:
        renormalised = mode == "hidden, renormalised"
        code = f"dot_product.without_first({code}, renormalised={renormalised})"
    return Given(drawn, f"masked({code})", __name__)


def _look(view: View, mode: str) -> dict[str, Any]:
    """What the map of this mode is called, and how it is coloured."""
    look: dict[str, Any] = {"key": "sink_map", "name": f"Pattern of {view.at.label}, {mode}"}
    if mode == "log scale":
        return look | {"colours": "log"}
    if mode == "value-weighted":
        top = float(np.nanmax(_values(view, mode)))
        look |= {"array": mode, "value": "weight times norm"}
        return look | {"top": Given(top, "float(np.nanmax(values))")}
    if MODES[mode].hides_first:
        return look | {"array": "without first key", "value": "remaining weight"}
    return look


def _alt(view: View, mode: str, drawn: Array) -> str:
    query, key = np.unravel_index(np.nanargmax(drawn), drawn.shape)
    tokens = view.trace.tokens
    return (
        f"Pattern of {view.at.label}, {mode}: the largest of {len(drawn)} by {len(drawn)} values "
        f"is {drawn[query, key]:.3g}, from {tokens[query]} ({query}) to {tokens[key]} ({key})."
    )


def _shares(view: View, mode: str) -> None:
    """How much weight lies on the first token, and how much of it this mode hides."""
    pattern = _pattern(view)
    queries = view.trace.text_queries
    share = dot_product.share_of_first(pattern, queries)
    if math.isnan(share):
        explained.note(
            "The shares need at least one token after the first that is not a special token."
        )
        return
    value_share = dot_product.share_of_first(np.nan_to_num(values.value_weighted(view)), queries)
    norms = values.norms(view)
    last = view.trace.n_tokens - 1
    query = f"{view.trace.tokens[view.token]} ({view.token})"
    facts(
        {
            "hidden here": f"{share:.1%} of the weight" if MODES[mode].hides_first else "nothing",
            "on the first token": f"{share:.1%} of the weight of queries 1 to {last:,}"
            f"{without_special(view)}, mean A_i0",
            "selected query": f"{query}, weight {_small(float(pattern[view.token, 0]))}",
            "value-weighted": f"{value_share:.1%} of ‖α f(x)‖",
            "‖f(x)‖": f"first token {norms[0]:.3g}, median of others {np.median(norms[1:]):.3g}",
        }
    )


def _small(weight: float) -> str:
    return f"{weight:.3f}" if weight >= 0.0005 or not weight else "<0.001"
