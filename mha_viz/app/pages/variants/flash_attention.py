"""The FlashAttention part: memory, time, and the online softmax tile by tile."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st
import torch

from mha_viz.app.messages import plain
from mha_viz.app.pages.variants import attention_memory, attention_times, memory_traffic
from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.chart import chart, square
from mha_viz.app.widgets.choices import segmented_control
from mha_viz.app.widgets.recipes import recipe
from mha_viz.app.widgets.selection import n_first_tokens, selected_index
from mha_viz.app.widgets.stepper import steps
from mha_viz.attention import attention_scores, causal_mask, masked_softmax
from mha_viz.export import Drawn, Given, pattern_data, rows_data
from mha_viz.figures.theme import TextSizes, Theme
from mha_viz.figures.tiles import running_figure, tiles_figure
from mha_viz.lessons import flash
from mha_viz.lessons.flash import Tile
from mha_viz.trace import Array, Trace

MAX_TOKENS = 64
BLOCKS = [4, 8, 16, 32]
Panel = tuple[Array, tuple[float, float]]  # a value for each query, and the range of the axis


@dataclass(frozen=True, slots=True, eq=False)
class TiledHead:
    """A head computed tile by tile, and its z from explicit attention."""

    tiles: tuple[Tile, ...]
    z: Array  # [T, d_h], explicit
    difference: float  # the largest absolute difference between the two results

    def distances(self, at: int) -> Array:
        """`[b_q]`: the norm of the difference of each query's running output from its final z."""
        tile = self.tiles[at]
        difference = tile.o.numpy() - self.z[tile.queries.start : tile.queries.stop]
        distances: Array = np.linalg.norm(difference, axis=-1)
        return distances


def show(view: View) -> None:
    """What lies where, memory and time for each T, then the tiles of the selected head."""
    memory_traffic.show(view)
    attention_memory.show(view)
    attention_times.show(view)
    if selected_index(view) is not None:
        _tiles(view)


def _tiles(view: View) -> None:
    T = n_first_tokens(view, MAX_TOKENS)
    block = segmented_control("Tile size", BLOCKS, BLOCKS[0], "block")
    head = _tiled_head(view.trace_key, view.layer, view.head, T, block, _view=view)
    caption(
        f"{view.at.label} tile by tile",
        f"{block} queries by {block} keys at a time. Grey tiles are done and discarded; violet "
        "shows the current tile's weights e^(s − m). Tiles entirely above the diagonal are "
        "skipped. Bars: the running maximum m and sum ℓ of the current queries, and how far each "
        "running output o is from its final value.",
    )
    code = "_tile_head(trace, layer, head, T, block)"
    given = {"T": T, "block": block, "tiled": Given(head, code)}
    steps("Tile", "tile", len(head.tiles), lambda at: _step(view, head, given | {"at": at}))
    _formulas()
    explained.note(
        "Dao et al. 2022, section 3.1 and algorithm 1; order of the tiles: Dao 2023, algorithm 1."
    )
    with st.expander("Code"):
        for function in (flash.tiled_attention, flash.tiles, flash.online_softmax):
            st.code(inspect.getsource(function), language="python")
        explained.note("mha_viz/lessons/flash.py")


def _formulas() -> None:
    maximum, total, output = st.columns([2, 3, 4], gap="medium")
    maximum.latex(r"m' = \max(m,\ \max_j s_j)")
    total.latex(r"\ell' = e^{m - m'}\,\ell + \sum_j e^{s_j - m'}")
    output.latex(r"o' = \frac{1}{\ell'}\Big(e^{m - m'}\,\ell\,o + \sum_j e^{s_j - m'}\,v_j\Big)")


def _step(view: View, head: TiledHead, given: Mapping[str, Any]) -> None:
    at = given["at"]
    tile = head.tiles[at]
    tokens = view.trace.tokens[: len(head.z)]
    explained.paragraph(_step_sentence(head, tokens, at))
    left, right = st.columns(2, gap="small")
    with left:
        position = f"queries {_span(tile.queries)}, keys {_span(tile.keys)}"
        square(
            recipe(view, _draw_tiles, **given),
            key="tiles",
            name=f"Tile {at + 1} of {view.at.label}",
            alt=f"Tile {at + 1} of {len(head.tiles)}: {position}.",
        )
    with right:
        queries = tokens[tile.queries.start : tile.queries.stop]
        alt = (
            f"Running values of {len(queries)} queries; their outputs are at most "
            f"{head.distances(at).max():.3g} from their final values."
        )
        drawn = recipe(view, _draw_running, **given)
        chart(drawn, key="running", name="Running values of the queries", height=440, alt=alt)


def _draw_tiles(trace: Trace, tiled: TiledHead, at: int, theme: Theme, sizes: TextSizes) -> Drawn:
    tile, tokens = tiled.tiles[at], trace.tokens[: len(tiled.z)]
    weights = torch.exp(tile.scores - tile.m[..., None]).numpy()
    weights = np.where(np.isinf(tile.scores.numpy()), np.float32(np.nan), weights)
    ranges = [(each.queries, each.keys) for each in tiled.tiles]
    figure = tiles_figure(ranges, at, weights, tokens, theme, sizes=sizes)
    all_pairs = np.full((len(tokens), len(tokens)), np.nan, dtype=np.float32)
    all_pairs[tile.queries.start : tile.queries.stop, tile.keys.start : tile.keys.stop] = weights
    data = pattern_data(all_pairs, tokens, name="weights of the tile", value="exp(s - m)")
    return figure, data


def _draw_running(trace: Trace, tiled: TiledHead, at: int, theme: Theme, sizes: TextSizes) -> Drawn:
    queries = tiled.tiles[at].queries
    tokens, panels = trace.tokens[queries.start : queries.stop], _panels(tiled, at)
    figure = running_figure(tokens, panels, theme, sizes=sizes)
    columns = [queries, tokens, *(values.tolist() for values, _ in panels.values())]
    data = rows_data(["query", "token", *panels], list(zip(*columns, strict=True)))
    return figure, data


def _panels(head: TiledHead, at: int) -> dict[str, Panel]:
    """The running values at this tile, each with its range over all tiles."""
    tile = head.tiles[at]
    m = np.concatenate([each.m.numpy() for each in head.tiles])
    total = np.concatenate([each.l.numpy() for each in head.tiles])
    distances = np.concatenate([head.distances(i) for i in range(len(head.tiles))])
    return {
        "maximum m": (tile.m.numpy(), _range(m)),
        "sum ℓ": (tile.l.numpy(), _range(total)),
        "distance of o": (head.distances(at), _range(distances)),
    }


def _range(values: Array) -> tuple[float, float]:
    low, high = min(0.0, float(values.min())), max(0.0, float(values.max()))
    margin = 0.05 * (high - low) or 1.0
    return (low - margin if low < 0 else 0.0), high + margin


def _step_sentence(head: TiledHead, tokens: tuple[str, ...], at: int) -> str:
    tile, n = head.tiles[at], len(head.tiles)
    ends = dict.fromkeys((tile.queries[0], tile.queries[-1]))
    names = " to ".join(plain(tokens[i]) for i in ends)
    sentence = (
        f"Tile {at + 1} of {n}: queries {_span(tile.queries)} ({names}) look at keys "
        f"{_span(tile.keys)}."
    )
    if at + 1 == n:
        return (
            f"{sentence} All tiles are done: the largest difference from explicit attention is "
            f"**{head.difference:.1e}**."
        )
    last_of_block = head.tiles[at + 1].queries != tile.queries
    return f"{sentence} The outputs of these queries are final." if last_of_block else sentence


def _span(positions: range) -> str:
    return f"{positions[0]} to {positions[-1]}" if len(positions) > 1 else f"{positions[0]}"


@st.cache_resource(max_entries=32, show_spinner=False)
def _tiled_head(
    trace_key: str, layer: int, head: int, T: int, block: int, *, _view: View
) -> TiledHead:
    return _tile_head(_view.trace, layer, head, T, block)


def _tile_head(trace: Trace, layer: int, head: int, T: int, block: int) -> TiledHead:
    q, k, v = (torch.tensor(x[layer, head, :T]) for x in (trace.q, trace.k, trace.v))
    scale = trace.scales[layer]
    z = masked_softmax(attention_scores(q, k, scale), causal_mask(T, T)) @ v
    out = flash.tiled_attention(q, k, v, block=block, scale=scale)
    return TiledHead(
        tiles=tuple(flash.tiles(q, k, v, block=block, scale=scale)),
        z=z.numpy(),
        difference=float((out - z).abs().max()),
    )
