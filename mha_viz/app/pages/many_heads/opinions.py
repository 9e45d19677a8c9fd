"""The Why several heads part: what each head looks at, and what one row for all would say."""

from collections.abc import Sequence

import streamlit as st
import torch

from mha_viz.app.messages import escaped, notice
from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.chart import chart
from mha_viz.app.widgets.recipes import recipe
from mha_viz.app.widgets.selection import n_first_tokens, selected_index
from mha_viz.export import Drawn, Given, matrix_data
from mha_viz.figures.opinions import opinions_figure, opinions_height
from mha_viz.figures.theme import TextSizes, Theme
from mha_viz.lessons.opinions import Opinions, opinions

MAX_TOKENS = 64  # that have room side by side
MOST_NAMED = 4  # favourites in the sentence


def show(view: View) -> None:
    """The rows of all heads for one token, their mean, and what the mean loses."""
    index = selected_index(view)
    if index is None:
        return
    T = n_first_tokens(view, MAX_TOKENS)
    found = _opinions(view.trace_key, view.layer, T, _view=view)
    tokens, heads = view.trace.tokens[:T], view.model.config.kept_heads(view.layer)
    words, choice = st.columns([4, 1], gap="medium")
    with words:
        explained.paragraph(
            "A row of weights is one opinion on where a token should look. What the token takes "
            "from there is one weighted mean of values. With several heads, it takes several means "
            "at once."
        )
    with choice:
        query = _token_input(view, found, tokens)
    caption(
        "What each head looks at",
        f"Layer {view.layer}. Each row holds the weights of one head for "
        f"<b>{escaped(tokens[query])}</b>; the last one is their mean. Ringed: the largest weight "
        "of a row. Colour: √ weight.",
    )
    _chart(view, found, T, query, index)
    explained.html(f'<p class="opinions">{sentence(found, query, tokens, heads)}</p>')


def _token_input(view: View, found: Opinions, tokens: Sequence[str]) -> int:
    """The token whose rows are shown; by default the one on which the heads agree least."""
    pinned = st.session_state.get("token")
    query = found.most_divided if pinned is None else min(view.token, len(tokens) - 1)
    if len(tokens) < 2:
        notice("One token can only look at itself. Type a longer text.")
        return query
    key = f"opinions_token_{query}"  # a new input for each token that is pinned elsewhere
    selected: int = explained.selectbox(
        "Token",
        range(len(tokens)),
        index=query,
        format_func=lambda t: f"{t}: {tokens[t]}",
        key=key,
        on_change=_pin,
        args=(key,),
        label_visibility="collapsed",
    )
    return selected


def _pin(key: str) -> None:
    st.session_state["token"] = st.session_state[key]


def sentence(found: Opinions, query: int, tokens: Sequence[str], heads: Sequence[int]) -> str:
    """What the heads look at most, and what becomes of it in the mean row, as HTML."""
    favourites, mean = found.favourites(query), found.mean[query]
    token = f"<b>{escaped(tokens[query])}</b>"
    named = ", ".join(
        f"head {heads[head]} at {escaped(tokens[key])} {weight:.2f}"
        for head, key, weight in favourites[:MOST_NAMED]
    )
    if len(heads) < 2:
        return f"This layer has one head, so there is one row. For {token}, it looks most: {named}."
    top = int(mean.argmax())
    change = (
        f"With the mean row in every head, the layer's output at {token} changes by "
        f"{found.change(query):.0%} of its length."
    )
    if len(favourites) == 1:
        return f"For {token}, all heads look most at {escaped(tokens[top])}. {change}"
    more = f" and {len(favourites) - MOST_NAMED} more" if len(favourites) > MOST_NAMED else ""
    _, key, weight = max(favourites, key=lambda f: f[2] - mean[f[1]])
    return (
        f"For {token}, {len(heads)} heads look most at {len(favourites)} different tokens: {named}"
        f"{more}. One row for all, their mean, looks most at {escaped(tokens[top])} "
        f"{mean[top]:.2f}; {escaped(tokens[key])} falls from {weight:.2f} to {mean[key]:.2f}. "
        f"{change}"
    )


def _chart(view: View, found: Opinions, T: int, query: int, index: int) -> None:
    tokens, heads = view.trace.tokens[:T], view.model.config.kept_heads(view.layer)
    drawn = recipe(
        view,
        _draw,
        T=T,
        query=query,
        index=index,
        heads=Given(heads, "model.config.kept_heads(layer)"),
        ids=Given(None, "torch.tensor([trace.token_ids[:T]], device=model.device)"),
        attention=Given(None, "model.network.blocks[layer].attn"),
        x=Given(None, "model.network.attention_input(ids, layer)"),
        found=Given(found, "opinions(attention, x)"),
        tokens=Given(tokens, "trace.tokens[:T]"),
    )
    figure = drawn.make()[0]
    rows = ", ".join(
        f"head {heads[head]} {tokens[key]} {weight:.2f}"
        for head, key, weight in found.favourites(query)
    )
    chart(
        drawn,
        figure=figure,
        key="opinions",
        name="One row of weights for each head, and their mean",
        height=opinions_height(len(heads)) + int(figure.layout.margin.t) + 4,
        alt=f"For {tokens[query]}: {rows}.",
    )


def _draw(
    found: Opinions,
    query: int,
    index: int,
    heads: Sequence[int],
    tokens: Sequence[str],
    theme: Theme,
    sizes: TextSizes,
) -> Drawn:
    rows, keys = found.pattern[:, query, : query + 1], tokens[: query + 1]
    figure = opinions_figure(rows, keys, theme, heads=heads, selected=index, sizes=sizes)
    names = [f"H{head}" for head in heads]
    arrays = {"weights": rows, "mean": found.mean[query, : query + 1], "heads": heads}
    data = matrix_data(
        rows, ("row", names), ("key", keys), value="weight", labels="name", arrays=arrays
    )
    return figure, data


@st.cache_resource(max_entries=8, show_spinner=False)
def _opinions(trace_key: str, layer: int, T: int, *, _view: View) -> Opinions:
    network = _view.model.network
    ids = torch.tensor([_view.trace.token_ids[:T]], device=_view.model.device)
    return opinions(network.blocks[layer].attn, network.attention_input(ids, layer))
