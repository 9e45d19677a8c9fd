"""The figures of the pages that teach, from a trace to the JSON that is sent.

Most of these take a bounded part of a text, or none. Times, losses and memory that the pages
measure are given as seeded random numbers.
"""

import numpy as np
import torch

from bench.sent import AT, FULL, GIVEN, HALF, Sent, Shown, figure, model, some, traced
from mha_viz.app.pages import many_heads
from mha_viz.app.pages.shapes import walkthrough as shapes
from mha_viz.app.pages.variants import attention_memory, flash_attention, kv_cache, masks
from mha_viz.figures import cache_sizes, cache_steps
from mha_viz.figures.lines import Line, line_chart
from mha_viz.figures.loss_curves import LossCurve, loss_curves
from mha_viz.figures.masks import mask_figure, masked_pattern
from mha_viz.figures.pattern_mosaic import pattern_mosaic
from mha_viz.figures.shapes import tensor_drawing
from mha_viz.figures.sharing import sharing_figure
from mha_viz.figures.storage import storage_figure
from mha_viz.figures.theme import LIGHT
from mha_viz.figures.tiles import running_figure, tiles_figure
from mha_viz.figures.timing import timing_chart
from mha_viz.figures.values import matrix_heatmap
from mha_viz.lessons import flash, walkthrough
from mha_viz.lessons import layout as memory_layout
from mha_viz.lessons.counting import GPT2_SIZES, KNOWN_MODELS
from mha_viz.lessons.flash import Tile
from mha_viz.reference import head_reach

STEP = "softmax"  # the largest tensor of the walkthrough: [B, H, T, T]
H = 12


def tensor(T: int) -> Sent:
    network, (layer, head) = model().network, AT
    attention = network.blocks[layer].attn
    ids = torch.tensor([traced(T).token_ids])
    steps = walkthrough.walk(attention, network.attention_input(ids, layer))
    found = next(step for step in steps if step.lesson.name == STEP)
    drawn = tensor_drawing(
        found.tensor.numpy(), found.lesson.axes, LIGHT,
        heads=walkthrough.owners(attention, found, range(H)), selected=head,
    )  # fmt: skip
    ratio = drawn.layout.yaxis.range[0] / drawn.layout.xaxis.range[1]
    return figure(drawn, FULL, round(60 + 988 * ratio))


def storage(T: int) -> Sent:
    del T
    layout = memory_layout.layouts(*memory_layout.MAX_SIZES.values())[2]
    drawn = storage_figure(layout.cells, layout.storage, layout.axes, LIGHT, selected=(0, 0, 0))
    return figure(drawn, 620, 470)


def race(T: int) -> Sent:
    del T
    heads = many_heads.HEAD_COUNTS
    fused, listed = _random(2, len(heads)).tolist()
    return figure(timing_chart(heads, fused, listed, LIGHT, all_heads=heads), FULL, 300, GIVEN)


def reach(T: int) -> Sent:
    del T
    found = head_reach(model().network.blocks[AT[0]].attn, True).float().numpy()
    drawn = matrix_heatmap(
        found / found.max(), LIGHT, rows="head", columns="channel", weights=True
    )  # fmt: skip
    return figure(drawn, FULL, 230)


def sharing(T: int) -> Sent:
    del T
    return figure(sharing_figure(H, H // 2, LIGHT, selected=AT[1]), FULL, 170)


def memory_chart(T: int) -> Sent:
    del T
    rows = _random(4, len(attention_memory.LENGTHS)).tolist()
    lines = [Line(f"line {i}", row, LIGHT.muted) for i, row in enumerate(rows)]
    drawn = line_chart(
        attention_memory.LENGTHS, lines, LIGHT, x_title="T", y_title="bytes", log=True
    )
    return figure(drawn, 630, 330, GIVEN)


def kv_step(T: int) -> Sent:
    """The first step after the text has been read."""
    n = T + kv_cache.DEFAULT_NEW
    end = min(n, max(kv_cache.MOST_DRAWN, T + 1 + kv_cache.DRAWN_AFTER))
    part = slice(max(0, end - kv_cache.MOST_DRAWN), end)
    kept, without = kv_cache.states(T, 1, n)
    tokens = [*traced(T).tokens, *traced(T).tokens * kv_cache.DEFAULT_NEW][part]
    drawn = cache_steps.cache_figure(
        tokens, kept[part], without[part], LIGHT, generated=T + 1, first=part.start
    )
    drawn_n = end - part.start
    return figure(drawn, FULL, cache_steps.height(drawn_n), some(drawn_n, n, "positions"))


def known_models(T: int) -> Sent:
    del T
    rows = [
        cache_sizes.CacheSize(
            size.name, (size.cache_bytes(1, n_kv_heads=size.n_heads), size.cache_bytes(1),
                        size.cache_bytes(1, n_kv_heads=1)), size.cache_bytes(1), size.kind,
        )
        for size in (*GPT2_SIZES, *KNOWN_MODELS)
    ]  # fmt: skip
    drawn = cache_sizes.cache_sizes_figure(rows, LIGHT)
    return figure(drawn, FULL, cache_sizes.height(len(rows)))


def tiles(T: int) -> Sent:
    found, at = _tiles(T)
    tile = found[at]
    weights = torch.exp(tile.scores - tile.m[..., None]).numpy()
    ranges = [(each.queries, each.keys) for each in found]
    return figure(tiles_figure(ranges, at, weights, traced(T).tokens, LIGHT), HALF, HALF)


def running(T: int) -> Sent:
    found, at = _tiles(T)
    tile = found[at]
    panels = {
        "maximum m": (tile.m.numpy(), (-9.0, 9.0)), "sum ℓ": (tile.l.numpy(), (0.0, float(T))),
        "from the end": (tile.o.norm(dim=-1).numpy(), (0.0, 9.0)),
    }  # fmt: skip
    queries = tile.queries
    drawn = running_figure(traced(T).tokens[queries.start : queries.stop], panels, LIGHT)
    return figure(drawn, HALF, 440)


def _tiles(T: int) -> tuple[list[Tile], int]:
    trace, (layer, head) = traced(T), AT
    q, k, v = (torch.tensor(x[layer, head]) for x in (trace.q, trace.k, trace.v))
    found = list(flash.tiles(q, k, v, block=flash_attention.BLOCKS[0], scale=trace.scales[layer]))
    return found, len(found) // 2


def mask(T: int) -> Sent:
    tokens = traced(T).tokens
    return figure(mask_figure(np.tri(T, dtype=np.bool_), tokens, tokens, LIGHT), HALF, HALF)


def under_mask(T: int) -> Sent:
    tokens, seen = traced(T).tokens, np.tri(T, dtype=np.bool_)
    drawn = masked_pattern(traced(T).pattern(*AT), seen, tokens, tokens, LIGHT)
    return figure(drawn, HALF, HALF)


def training(T: int) -> Sent:
    del T
    steps = np.arange(0, 5001, 50, dtype=np.float32)
    found = [
        LossCurve(name, steps, *_random(2, 5, len(steps)).astype(np.float32))
        for name in ("1 head × 32", "4 heads × 8")
    ]
    return figure(loss_curves(found, 4.17, 5000, LIGHT), 570, 420, GIVEN)


def triangles(T: int) -> Sent:
    del T
    found = [(f"{n} heads", _random(n, 8, 8).astype(np.float32)) for n in (1, 32)]
    drawn = pattern_mosaic(found, "the king", LIGHT)
    return figure(drawn, drawn.layout.width, drawn.layout.height, GIVEN)


def _random(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).random(shape)


LESSONS = (
    Shown("Shapes: the patterns of a layer", tensor, most=shapes.MOST_TOKENS),
    Shown("Shapes: cells and storage", storage, any_text=True),
    Shown("Many heads: fused projection or loop", race, any_text=True),
    Shown("Many heads: what W_O reaches", reach, any_text=True),
    Shown("Variants: grouped-query attention", sharing, any_text=True),
    Shown("Variants: a step with the KV cache", kv_step, most=kv_cache.MOST_PROMPT),
    Shown("Variants: caches of well-known models", known_models, any_text=True),
    Shown("Variants: peak memory of attention", memory_chart, any_text=True),
    Shown("Variants: tiles", tiles, most=flash_attention.MOST_TOKENS),
    Shown("Variants: running values", running, most=flash_attention.MOST_TOKENS),
    Shown("Variants: mask", mask, most=masks.MOST_TOKENS),
    Shown("Variants: pattern under the mask", under_mask, most=masks.MOST_TOKENS),
    Shown("Training: losses", training, any_text=True),
    Shown("Training: patterns", triangles, any_text=True),
)
