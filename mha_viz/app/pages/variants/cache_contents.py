"""The cells of a cache while the model writes: groups, positions, and the weights of a head."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.chart import chart
from mha_viz.app.widgets.choices import segmented_control
from mha_viz.app.widgets.recipes import loaded, recipe
from mha_viz.app.widgets.tables import facts
from mha_viz.export import Drawn, Given, rows_data
from mha_viz.figures.cache_contents import CacheContents, Group, contents_figure, height
from mha_viz.figures.text import format_bytes
from mha_viz.figures.theme import TextSizes, Theme
from mha_viz.lessons.counting import kv_cache_bytes
from mha_viz.lessons.grouped_query import grouped_gpt2
from mha_viz.model import Model
from mha_viz.network import NetworkConfig
from mha_viz.trace import Array

MAX_DRAWN = 24  # positions
DRAWN_AFTER = 7  # positions after the newest, among those drawn
MAX_GROUPS = 6  # groups that are drawn
LISTED = 5  # numbers of groups whose bytes are listed


def choose_groups(view: View) -> int:
    """The selected G: the model's own, unless another one divides it and is asked for."""
    config = view.model.config
    own = config.n_kv_heads or config.n_heads
    if any(config.pruned_heads):
        return own
    groups = [n for n in range(own, 0, -1) if own % n == 0]
    return segmented_control("Key/value heads G of the cache", groups, own, "cache_G")


def with_groups(model: Model, G: int) -> Model:
    """The model with G key/value heads, each the mean of those before; itself for its own G."""
    own = model.config.n_kv_heads or model.config.n_heads
    return model if own == G else replace(model, network=grouped_gpt2(model.network, G))


def model_given(view: View, G: int) -> Given:
    """The model of the page as a script makes it."""
    given = loaded(view.source, view.model, view.device)
    return Given(with_groups(view.model, G), f"with_groups({given.code}, {G})", given.module)


def show(
    view: View,
    G: int,
    n_prompt: int,
    ids: Sequence[int],
    ids_given: dict[str, Any],
    step: int,
) -> None:
    """The cells after the step, what the step wrote, and the bytes for several G."""
    model = with_groups(view.model, G)
    attention = model.network.blocks[view.layer].attn
    kept = view.model.config.kept_heads(view.layer)
    if view.head not in kept:
        return
    position = n_prompt + step  # how many positions the cache holds
    n_new = n_prompt if step == 0 else 1
    drawn = drawn_groups(attention.n_kv_heads, kept, view.head)
    left, right = st.columns([5, 1], gap="small")
    with left:
        caption(
            "The cache while the model writes",
            f"Layer {view.layer}, G = {attention.n_kv_heads}: a cell is the key or the value of "
            f"one position and one group, {model.config.d_head} numbers. Colour and numbers: "
            f"weights of {view.at.label}'s newest query (√ scale). Ringed: written in this step.",
        )
        pattern = _pattern(
            view.trace_key, n_prompt, tuple(ids), G, view.layer, view.head, _model=model
        )
        given: dict[str, Any] = {
            "pattern": Given(pattern, "_weights(model, ids, layer, head)"),
            "G": G,
        }
        sentence = written_sentence(model, view.layer, view.head, n_new, position, kept)
        chart(
            recipe(
                view,
                _draw_contents,
                model=model_given(view, G),
                step=step,
                n_prompt=n_prompt,
                **ids_given,
                **given,
            ),
            key="cache_contents",
            name="The cache while the model writes",
            height=height(len(drawn), view.sizes),
            alt=sentence,
        )
    with right:
        _bytes(model.config, view.model, G, position)
    explained.paragraph(sentence)


def drawn_groups(n_groups: int, kept: Sequence[int], head: int) -> list[Group]:
    """The groups that are drawn: at most MAX_GROUPS, among them that of the head."""
    share = len(kept) // n_groups
    groups = [Group(g, kept[g * share : (g + 1) * share]) for g in range(n_groups)]
    mine = kept.index(head) // share
    first = max(0, min(mine - MAX_GROUPS // 2, n_groups - MAX_GROUPS))
    return groups[first : first + MAX_GROUPS]


def written_sentence(
    model: Model, layer: int, head: int, n_new: int, position: int, kept: Sequence[int]
) -> str:
    """How many cells the step writes, how many it leaves alone, and who else reads them."""
    G = model.network.blocks[layer].attn.n_kv_heads
    before = 2 * G * (position - n_new)
    cells = 2 * G * n_new
    done = (
        f"**This step writes {cells:,} cells in this layer and computes none of the other "
        f"{before:,} again.**"
        if before
        else f"**This step reads the prompt and writes {cells:,} cells in this layer.**"
    )
    (group,) = (g for g in drawn_groups(G, kept, head) if head in g.readers)
    others = [f"q{h}" for h in group.readers if h != head]
    if not others:
        return f"{done} No other query head reads the cells of q{head}."
    *first, last = others
    listed = f"{', '.join(first)} and {last}" if first else last
    return f"{done} {listed} read{'s' * (not first)} the same cells as q{head}."


def _bytes(config: NetworkConfig, model: Model, G: int, position: int) -> None:
    """The bytes of all layers after this step, for each G."""
    own = model.config.n_kv_heads or model.config.n_heads
    if any(config.pruned_heads):
        return
    groups = [n for n in range(own, 0, -1) if own % n == 0]
    listed = sorted({*groups[:2], *groups[-2:], G}, reverse=True)[:LISTED]
    value = model.network.dtype.itemsize
    caption(
        f"{position:,} position{'s' * (position != 1)}, {config.n_layers} layers",
        f"{value} bytes per value.",
    )
    sizes = {
        n: kv_cache_bytes(
            config.n_layers, n, config.d_head, n_tokens=position, bytes_per_value=value
        )
        for n in listed
    }
    facts({f"G = {n}{' ←' * (n == G)}": format_bytes(size) for n, size in sizes.items()})


@st.cache_resource(max_entries=16, show_spinner=False)
def _pattern(
    trace_key: str,
    n_prompt: int,
    ids: tuple[int, ...],
    G: int,
    layer: int,
    head: int,
    *,
    _model: Model,
) -> Array:
    return _weights(_model, ids, layer, head)


def _weights(model: Model, ids: Sequence[int], layer: int, head: int) -> Array:
    """The head's pattern `[T, T]` on the ids."""
    return model.trace_ids(list(ids)).pattern(layer, head)


def _draw_contents(
    model: Model,
    ids: list[int],
    pattern: Array,
    n_prompt: int,
    step: int,
    layer: int,
    head: int,
    theme: Theme,
    sizes: TextSizes,
) -> Drawn:
    written = n_prompt + step
    shown = drawn_positions(len(ids), written)
    tokens = [token.label for token in model.read(ids)]
    part = slice(shown.start, shown.stop)
    contents = CacheContents(
        tokens=tokens[part],
        first=shown.start,
        n_written=written,
        n_new=n_prompt if step == 0 else 1,
        weights=pattern[written - 1, part],
    )
    groups = drawn_groups(
        model.network.blocks[layer].attn.n_kv_heads, model.config.kept_heads(layer), head
    )
    figure = contents_figure(contents, groups, head, theme, sizes=sizes)
    rows = [
        [i, tokens[i] if i < written else "", float(pattern[written - 1, i]) if i < written else ""]
        for i in shown
    ]
    data = rows_data(["position", "token", f"weight of head {head}"], rows)
    return figure, data


def drawn_positions(n: int, written: int) -> range:
    """The positions that are drawn: all `n`, or those up to a few after the newest."""
    end = n if n <= MAX_DRAWN else min(n, max(MAX_DRAWN, written + DRAWN_AFTER))
    return range(max(0, end - MAX_DRAWN), end)
