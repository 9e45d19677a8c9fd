"""The One product part: W_QKV as matrices side by side, and the product of each against one."""

import inspect
from collections.abc import Sequence

import streamlit as st
import torch

from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.caption import caption, metrics
from mha_viz.app.widgets.chart import chart
from mha_viz.app.widgets.recipes import recipe
from mha_viz.app.widgets.selection import n_first_tokens, selected_index
from mha_viz.export import Drawn, Given, matrix_data
from mha_viz.figures.projection import projection_figure, projection_height
from mha_viz.figures.theme import TextSizes, Theme
from mha_viz.lessons import one_product
from mha_viz.lessons.counting import attention_flops
from mha_viz.lessons.operands import Operands, operands_of_layer

MAX_TOKENS = 64


def show(view: View) -> None:
    """The product with its operands, and both ways to compute it."""
    index = selected_index(view)
    if index is None:
        return
    T = n_first_tokens(view, MAX_TOKENS)
    found, difference = _computed(view.trace_key, view.layer, T, _view=view)
    a = found.attention
    H, G, C = a.n_heads, a.n_kv_heads, a.d_model
    n = H + 2 * G
    explained.paragraph(
        f"Each of the {n} matrices of this layer, {H} for q and {G} each for k and v, is "
        f"[{C}, {a.d_head}]. A column of the product x @ W depends on no other column of W. So the "
        "matrices can stand side by side as one W_QKV, and one product computes what a list of "
        f"heads computes in {n}."
    )
    _chart(view, found, T, index)
    left, right = st.columns([3, 2], gap="medium")
    with left:
        caption("One by one", f"{n} products of [{T}, {C}] and [{C}, {a.d_head}].")
        st.code(_body(one_product.one_by_one), language="python", wrap_lines=True)
    with right:
        caption("At once", f"One product of [{T}, {C}] and [{C}, {n * a.d_head}].")
        st.code(_body(one_product.at_once), language="python", wrap_lines=True)
        flops = attention_flops(T, C, H, n_kv_heads=G, d_head=a.d_head).projection
        metrics(
            f"<b>{difference:.1e}</b> largest difference on this text"
            if difference
            else "<b>0</b> difference on this text, bit for bit",
            f"<b>{flops:,}</b> FLOPs either way",
        )
        explained.note(
            "The same sums, in float32; a kernel may add them in another order. What is saved is "
            f"{n - 1} calls, and x is read once instead of {n} times."
        )


def _body(function: object) -> str:
    """The code of a function without its docstring."""
    lines = inspect.getsource(function).splitlines()  # type: ignore[arg-type]
    return "\n".join(line for line in lines if '"""' not in line)


def _chart(view: View, found: Operands, T: int, index: int) -> None:
    C, width = found.W_QKV.shape
    heads = view.model.config.kept_heads(view.layer)
    query = min(view.token, T - 1)
    caption(
        "x @ W_QKV",
        f"Layer {view.layer}. The ringed row of x times the ringed columns of W is q of head "
        f"{heads[index]}. Grey: the k and v that this head reads.",
        f" In GPT-2, W_QKV is <code>c_attn</code>, [{C}, {3 * C}].",
    )
    drawn = recipe(
        view,
        _draw,
        T=T,
        query=query,
        index=index,
        heads=Given(heads, "model.config.kept_heads(layer)"),
        ids=Given(None, "torch.tensor([trace.token_ids[:T]], device=model.device)"),
        operands=Given(found, "operands_of_layer(model.network, ids, layer)"),
        tokens=Given(view.trace.tokens[:T], "trace.tokens[:T]"),
    )
    chart(
        drawn,
        key="one_product",
        name="x @ W_QKV = q k v",
        height=projection_height(T),
        alt=f"x [{T}, {C}] times W_QKV [{C}, {width}] is q, k and v [{T}, {width}].",
    )


def _draw(
    operands: Operands,
    tokens: Sequence[str],
    heads: Sequence[int],
    index: int,
    query: int,
    theme: Theme,
    sizes: TextSizes,
) -> Drawn:
    figure = projection_figure(
        operands.x,
        operands.W_QKV,
        operands.qkv,
        tokens,
        theme,
        heads=heads,
        n_kv_heads=operands.attention.n_kv_heads,
        query=query,
        selected=index,
        sizes=sizes,
    )
    arrays = {"x": operands.x, "W_QKV": operands.W_QKV, "q k v": operands.qkv, "tokens": tokens}
    data = matrix_data(
        operands.qkv, ("position", tokens), ("column", ()), value="q k v", arrays=arrays
    )
    return figure, data


@st.cache_resource(max_entries=4, show_spinner=False)
def _computed(trace_key: str, layer: int, T: int, *, _view: View) -> tuple[Operands, float]:
    """The operands, and how far both ways are apart."""
    network = _view.model.network
    ids = torch.tensor([_view.trace.token_ids[:T]], device=_view.model.device)
    x = network.attention_input(ids, layer)
    difference = one_product.largest_difference(network.blocks[layer].attn, x)
    return operands_of_layer(network, ids, layer), difference
