"""The size of a key/value cache: of the model on the page, and of well-known models."""

from collections.abc import Sequence

import streamlit as st

from mha_viz.app.messages import escaped
from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.caption import caption, model_name
from mha_viz.app.widgets.chart import chart
from mha_viz.app.widgets.choices import segmented_control
from mha_viz.app.widgets.download_buttons import download_table
from mha_viz.app.widgets.recipes import recipe
from mha_viz.app.widgets.tables import facts, table
from mha_viz.export import Drawn, Given, rows_data
from mha_viz.figures.cache_sizes import CacheSize, cache_sizes_figure, height
from mha_viz.figures.text import format_bytes
from mha_viz.figures.theme import TextSizes, Theme
from mha_viz.lessons.counting import GPT2_SIZES, KNOWN_MODELS, ModelSize
from mha_viz.network import Network

LENGTHS = ("one token", "full context")
MAX_GROUPS = 8  # key/value heads with GQA, in the comparison
CACHES = "[_cache(model, T or model.n_positions) for model in [*own, *GPT2_SIZES, *KNOWN_MODELS]]"
COLUMNS = {
    "Model": None,
    "Kind": 110,
    "L": 45,
    "H": 45,
    "G": 45,
    "d_h": 45,
    "Context": 65,
    "Window": 65,
}


def n_kv_heads(network: Network) -> int:
    """The number of key/value heads in all layers: L times G unless heads have been pruned."""
    return sum(block.attn.n_kv_heads for block in network.blocks)


def of_this_model(view: View, network: Network, *, n_tokens: int) -> None:
    """Why a cache works, and its size here after `n_tokens` tokens of the network."""
    n_bytes, n_positions = network.dtype.itemsize, network.config.n_positions
    per_token = 2 * n_kv_heads(network) * network.config.d_head * n_bytes
    own = network is view.model.network
    loaded = "as loaded here" if own else f"with G = {network.blocks[0].attn.n_kv_heads}"
    caption("Cache size", f"{escaped(model_name(view))} {loaded}, {n_bytes} bytes per value.")
    st.latex(
        r"\text{softmax}\!\left(\text{scale} \cdot q_t\,[k_0 \dots k_t]^\top\right)"
        r"[v_0 \dots v_t]"
    )
    explained.paragraph(
        "The newest query needs every key and value so far, and those of earlier tokens never "
        "change. A cache stores them, so each step projects only the newest token."
    )
    st.latex(r"\text{bytes} = 2 \cdot L \cdot G \cdot d_h \cdot T \cdot b")
    facts(
        {
            "per token": format_bytes(per_token),
            f"these {n_tokens} tokens": format_bytes(n_tokens * per_token),
            f"all {n_positions:,} positions": format_bytes(n_positions * per_token),
        }
    )
    explained.note("Vaswani et al. 2017, section 3.2.1; Shazeer 2019, section 3 (why G matters).")


def known_models(view: View) -> None:
    """The cache of well-known models, as they are and with other numbers of key/value heads."""
    length = segmented_control("Cache of", LENGTHS, LENGTHS[0], "cache_of")
    own, T = _this_model(view), 1 if length == LENGTHS[0] else None
    sizes = [*own, *GPT2_SIZES, *KNOWN_MODELS]
    caches = [_cache(size, T or size.n_positions) for size in sizes]
    tokens = "one token" if length == LENGTHS[0] else "the full context that a model was trained on"
    caption(
        "Cache of well-known models",
        f"Bytes for {tokens}, with 2 bytes per value. Each row is a model: its own cache, and what "
        "it would be with MHA (keys and values for each query head), GQA (eight key/value heads, "
        "or the next smaller number that divides H) and MQA (one). A model with a window caches "
        "only the last tokens, as many as the window has.",
    )
    chart(
        recipe(view, _draw_caches, own=own, T=T, caches=Given(caches, CACHES)),
        key="cache_sizes",
        name="Cache of well-known models",
        height=height(len(caches)),
        alt="; ".join(f"{cache.name} {format_bytes(cache.actual)}" for cache in caches),
    )
    _table(sizes, caches, length)


def _draw_caches(caches: Sequence[CacheSize], theme: Theme, sizes: TextSizes) -> Drawn:
    figure = cache_sizes_figure(caches, theme, sizes=sizes)
    data = rows_data(
        ["model", "kind", "own cache (bytes)", "MHA (bytes)", "GQA (bytes)", "MQA (bytes)"],
        [[cache.name, cache.actual_kind, cache.actual, *cache.n_bytes] for cache in caches],
    )
    return figure, data


def _table(sizes: Sequence[ModelSize], caches: Sequence[CacheSize], length: str) -> None:
    columns = [*COLUMNS, f"Own, {length}", "MHA", "GQA", "MQA"]
    configs = [
        [m.name, m.kind, m.n_layers, m.n_heads, m.n_kv_heads, m.d_head, m.n_positions, _window(m)]
        for m in sizes
    ]
    n_bytes = [[cache.actual, *cache.n_bytes] for cache in caches]
    rows = [[*config, *map(format_bytes, n)] for config, n in zip(configs, n_bytes, strict=True)]
    table(
        columns,
        rows,
        widths=COLUMNS,
        key="known_models",
        height=35 * (len(rows) + 1) + 3,
        alt="Each model, its sizes, its cache, and its cache with MHA, GQA and MQA.",
    )
    with st.expander("Sources"):
        st.text("\n".join(f"{model.name}: {model.source}" for model in sizes))
    sources = [model.source for model in sizes]
    csv_rows = [[*c, *n, s] for c, n, s in zip(configs, n_bytes, sources, strict=True)]
    download_table("cache_sizes.csv", [*columns, "Source"], csv_rows)


def _window(size: ModelSize) -> str:
    """The window of a model, if it has one."""
    return f"{size.window:,}" if size.window else ""


def _this_model(view: View) -> list[ModelSize]:
    """The loaded model, unless it is listed already or its layers differ after pruning."""
    config = view.model.config
    if any(config.pruned_heads) or view.about.name in {size.name for size in GPT2_SIZES}:
        return []
    return [
        ModelSize(
            name="this model",
            n_layers=config.n_layers,
            d_model=config.d_model,
            n_heads=config.n_heads,
            n_kv_heads=config.n_kv_heads or config.n_heads,
            d_head=config.d_head,
            n_positions=config.n_positions,
            source=f"{model_name(view)}: its configuration, as loaded",
        )
    ]


def _cache(size: ModelSize, n_tokens: int) -> CacheSize:
    groups = max(n for n in range(1, MAX_GROUPS + 1) if size.n_heads % n == 0)
    mha, gqa, mqa = (size.cache_bytes(n_tokens, n_kv_heads=G) for G in (size.n_heads, groups, 1))
    return CacheSize(size.name, (mha, gqa, mqa), size.cache_bytes(n_tokens), size.kind)
