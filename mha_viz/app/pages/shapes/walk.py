"""The layer that the Walkthrough part shows, on the text or on random input."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import streamlit as st
import torch
from torch import Tensor

from mha_viz.app.messages import problem
from mha_viz.app.view import View
from mha_viz.app.widgets.choices import number_input
from mha_viz.app.widgets.selection import n_first_tokens, selected_index
from mha_viz.attention import MultiHeadAttention, fitting_head_counts
from mha_viz.errors import ShapeError
from mha_viz.export import Given
from mha_viz.figures.journey.layer import Layer
from mha_viz.lessons import walkthrough
from mha_viz.lessons.walkthrough import Step
from mha_viz.trace import Array

MAX_TOKENS = 256  # the scores of the whole layer are kept, and they grow with the square of T
STEPS = "walkthrough.walk(attention, x, resid)"
SIZES = {"B": (1, 4, 2), "T": (1, 32, 6), "C": (1, 96, 24), "H": (1, 32, 4)}  # low, high, default
HELP = {
    "B": "Batch size",
    "T": "Number of positions",
    "C": "Width of a position, d_model",
    "H": "Number of heads; C must be a multiple of it",
}


@dataclass(frozen=True, slots=True, eq=False)
class Walkthrough:
    """The steps of one layer, and the layer that they belong to."""

    steps: tuple[Step, ...]
    attention: MultiHeadAttention
    resid: Tensor = field(repr=False)  # [B, T, C], the stream that the layer adds to
    heads: tuple[int, ...]  # the layer's heads by their number in the model
    index: int  # of the selected head among them
    tokens: tuple[str, ...]  # empty for random input
    name: str  # "layer 2 on this text"
    given: Mapping[str, Any]  # what scripts need to compute the steps


def of_text(view: View) -> Walkthrough | None:
    """The selected layer on the text; None if the selected head has been pruned."""
    index = selected_index(view)
    if index is None:
        return None
    T = n_first_tokens(view, MAX_TOKENS)
    attention, resid, steps = _steps_on_text(view.trace_key, view.layer, T, _view=view)
    heads = tuple(view.model.config.kept_heads(view.layer))
    name = f"layer {view.layer} on this text"
    tokens = view.trace.tokens[:T]
    read = "walkthrough.layer_input(model.network, ids, layer)"
    given = {
        "T": T,
        "attention": Given(attention, "model.network.blocks[layer].attn"),
        "ids": Given(None, "torch.tensor([trace.token_ids[:T]], device=model.device)", __name__),
        "resid": Given(resid, f"{read}[0]", __name__),
        "x": Given(None, f"{read}[1]", __name__),
        "steps": Given(steps, STEPS, __name__),
        "tokens": Given(tokens, "trace.tokens[:T]"),
    }
    return Walkthrough(steps, attention, resid, heads, index, tokens, name, given)


@st.cache_resource(max_entries=8, show_spinner=False)
def _steps_on_text(
    trace_key: str, layer: int, T: int, *, _view: View
) -> tuple[MultiHeadAttention, Tensor, tuple[Step, ...]]:
    network = _view.model.network
    ids = torch.tensor([_view.trace.token_ids[:T]], device=_view.model.device)
    attention = network.blocks[layer].attn
    resid, x = walkthrough.layer_input(network, ids, layer)
    return attention, resid, walkthrough.walk(attention, x, resid)


def of_random_input() -> Walkthrough | None:
    """A random layer of the selected sizes; None if they do not fit, and the page then says so."""
    with st.container(horizontal=True):
        B, T, C, H = (
            number_input(name, *limits, f"size_{name}", help=HELP[name])
            for name, limits in SIZES.items()
        )
    try:
        attention, x, steps = _steps_on_random_input(B, T, C, H)
    except ShapeError as error:
        problem(str(error))
        _offer_fitting_heads(C, H)
        return None
    name = f"a random layer with C = {C}, H = {H} (seed 0)"
    layer = "walkthrough.random_layer(C, H, B, T)"
    given: dict[str, Any] = {"B": B, "T": T, "C": C, "H": H, "tokens": ()}
    given["attention"] = Given(attention, f"{layer}[0]", __name__)
    given["x"] = Given(None, f"{layer}[1]", __name__)
    given |= {"resid": Given(x, "x"), "steps": Given(steps, STEPS, __name__)}
    return Walkthrough(steps, attention, x, tuple(range(H)), 0, (), name, given)


def _offer_fitting_heads(C: int, H: int) -> None:
    for column, fitting in zip(st.columns(4), fitting_head_counts(C, H), strict=False):
        label = f"H = {fitting}, d_h = {C // fitting}"
        column.button(label, on_click=_set_heads, args=(fitting,), width="stretch")


def _set_heads(n_heads: int) -> None:
    st.session_state["size_H"] = n_heads


@st.cache_resource(max_entries=8, show_spinner=False)
def _steps_on_random_input(
    B: int, T: int, C: int, H: int
) -> tuple[MultiHeadAttention, Tensor, tuple[Step, ...]]:
    attention, x = walkthrough.random_layer(C, H, B, T)
    return attention, x, walkthrough.walk(attention, x)


def layer_of(
    steps: Sequence[Step],
    attention: MultiHeadAttention,
    resid: Tensor,
    heads: Sequence[int],
    tokens: Sequence[str],
    most: int,
) -> Layer:
    """The arrays of the first sequence for the pictures, of its first `most` tokens."""
    at = {step.lesson.name: step.tensor[0].float().cpu().numpy() for step in steps}
    T = min(len(at["x"]), most)
    square = np.s_[:, :T, :T]
    # The masked scores say what is masked, because a weight may underflow to 0.
    masked = np.isinf(at["mask"][square])
    W_QKV, W_O = attention.W_QKV, attention.W_O
    return Layer(
        x=at["x"][:T],
        resid=resid[0, :T].float().cpu().numpy(),
        qkv=at["q k v"][:T],
        scores=at["scores"][square],
        pattern=np.where(masked, np.float32(np.nan), at["softmax"][square]),
        z=at["merge"][:T],
        out=at["output"][:T],
        W_QKV=_array(W_QKV.weight.T),
        b_QKV=_array(W_QKV.bias, W_QKV.out_features),
        W_O=_array(W_O.weight.T),
        b_O=_array(W_O.bias, W_O.out_features),
        heads=tuple(heads),
        n_kv_heads=attention.n_kv_heads,
        d_head=attention.d_head,
        scale=attention.scale,
        tokens=tuple(tokens[:T]),
    )


def _array(weight: Tensor | None, n: int = 0) -> Array:
    """A parameter as an array; zeros if the layer has none."""
    if weight is None:
        return np.zeros(n, np.float32)
    found: Array = weight.detach().float().cpu().numpy()
    return found
