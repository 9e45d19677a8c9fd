"""Cards of multi-head, grouped-query and multi-query attention: who shares what, and its price."""

from collections.abc import Mapping, Sequence

import streamlit as st

from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.chart import chart
from mha_viz.app.widgets.recipes import recipe
from mha_viz.export import Drawn, columns_data
from mha_viz.figures.sharing import sharing_figure
from mha_viz.figures.text import format_bytes
from mha_viz.figures.theme import TextSizes, Theme
from mha_viz.lessons.counting import attention_parameters, kv_cache_bytes
from mha_viz.lessons.recovery import Recovery

IN_A_ROW = 4


def show(
    view: View,
    G: int,
    groups: Sequence[int],
    losses: Mapping[int, float],
    runs: Mapping[int, Recovery],
) -> None:
    """A card for each G: who reads what, its cache, its parameters and its losses."""
    for start in range(0, len(groups), IN_A_ROW):
        row = groups[start : start + IN_A_ROW]
        columns = st.columns(IN_A_ROW if len(groups) > IN_A_ROW else len(row))
        for column, n in zip(columns, row, strict=False):
            key = "card_selected" if n == G else f"card_{n}"
            with column, st.container(border=True, key=key):
                _card(view, n, selected=n == G, facts=_losses_of(n, groups[0], losses, runs))


def _card(view: View, G: int, *, selected: bool, facts: str) -> None:
    config = view.model.config
    H, d_h = config.n_heads, config.d_head
    n_bytes = view.model.network.dtype.itemsize
    cache = kv_cache_bytes(config.n_layers, G, d_h, bytes_per_value=n_bytes)
    layer = attention_parameters(config.d_model, H, n_kv_heads=G, d_head=d_h).total
    name = f"{_kind(G, H)}, G = {G}"
    explained.html(f'<div class="caption"><b>{name}</b></div>')
    alt = (
        f"{name}: {H} query heads share {G} key/value heads, {H // G} each; H{view.head} uses "
        f"key/value head {view.head // (H // G)}."
    )
    drawn = recipe(view, _draw_sharing, H=H, G=G)
    chart(drawn, key=f"sharing_{G}", name=name, height=118, alt=alt)
    explained.html(
        f'<div class="score"><span>cache per token <b>{format_bytes(cache)}</b></span>'
        f"<span>layer <b>{layer:,}</b></span></div>"
    )
    explained.html(f'<div class="score">{facts}</div>')


def _losses_of(G: int, own: int, losses: Mapping[int, float], runs: Mapping[int, Recovery]) -> str:
    """The losses of a card: as trained, or converted and trained further."""
    if G not in losses:
        return "<span>loss not measured yet</span>"
    if own == G:
        return f"<span>loss <b>{losses[G]:.2f}</b> as trained</span>"
    on = f" → trained further <b>{runs[G].trained_on:.2f}</b>" if G in runs else ""
    return f"<span>loss, converted <b>{losses[G]:.2f}</b>{on}</span>"


def _draw_sharing(H: int, G: int, head: int, theme: Theme, sizes: TextSizes) -> Drawn:
    figure = sharing_figure(H, G, theme, selected=head, sizes=sizes)
    data = columns_data(query_head=range(H), key_value_head=[h // (H // G) for h in range(H)])
    return figure, data


def _kind(G: int, H: int) -> str:
    if G == H:
        return "Multi-head"
    return "Multi-query" if G == 1 else "Grouped-query"
