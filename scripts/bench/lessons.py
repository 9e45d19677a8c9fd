"""The figures of the teaching pages, from a trace to the JSON that is sent.

Most of them show a limited part of a text, or none. Times, losses and memory that the pages measure
are random numbers here.
"""

import numpy as np
import torch

from bench.sent import AT, FULL, GIVEN, HALF, Sent, Shown, figure, model, some, traced
from mha_viz.app.pages import many_heads
from mha_viz.app.pages.shapes import walk
from mha_viz.app.pages.variants import attention_memory, flash_attention, kv_cache, masks
from mha_viz.figures import cache_sizes, cache_steps
from mha_viz.figures.journey.cells import images
from mha_viz.figures.journey.layer import Focus
from mha_viz.figures.journey.setting import MOST_TOKENS, Setting
from mha_viz.figures.journey.steps import STEPS
from mha_viz.figures.journey.still import still
from mha_viz.figures.lines import Line, line_chart
from mha_viz.figures.loss_curves import LossCurve, loss_curves
from mha_viz.figures.masks import mask_figure, masked_pattern
from mha_viz.figures.pattern_mosaic import pattern_mosaic
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

STEP = "transpose"  # the picture with the most parts
H = 12


def journey(T: int) -> Sent:
    network, (layer, head) = model().network, AT
    attention = network.blocks[layer].attn
    ids = torch.tensor([traced(T).token_ids])
    resid, x = walkthrough.layer_input(network, ids, layer)
    steps = walkthrough.walk(attention, x, resid)
    tokens = traced(T).tokens
    shown = walk.layer_of(steps, attention, resid, range(H), tokens, MOST_TOKENS)
    setting = Setting(shown, Focus(shown.T - 1, head), LIGHT)
    scene = STEPS[STEP](setting)
    drawn = still(scene, images(shown, LIGHT), setting.width, LIGHT)
    return figure(drawn, FULL, round(scene.height))


def storage(T: int) -> Sent:
    del T
    layout = memory_layout.layouts(*memory_layout.MAX_SIZES.values())[2]
    drawn = storage_figure(layout.cells, layout.tape, layout.axes, LIGHT, selected=(0, 0, 0))
    return figure(drawn, 620, 470)


def timing(T: int) -> Sent:
    del T
    heads = many_heads.HEAD_COUNTS
    fused, loop = _random(2, len(heads)).tolist()
    return figure(timing_chart(heads, fused, loop, LIGHT, all_heads=heads), FULL, 300, GIVEN)


def reach(T: int) -> Sent:
    del T
    reached = head_reach(model().network.blocks[AT[0]].attn, True).float().numpy()
    shares = reached / reached.max()
    drawn = matrix_heatmap(shares, LIGHT, rows="head", columns="channel", weights=True)
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
    """The first step after the prompt."""
    n = T + kv_cache.DEFAULT_NEW
    end = min(n, max(kv_cache.MAX_DRAWN, T + 1 + kv_cache.DRAWN_AFTER))
    part = slice(max(0, end - kv_cache.MAX_DRAWN), end)
    kept, without = kv_cache.states(T, 1, n)
    tokens = [*traced(T).tokens, *traced(T).tokens * kv_cache.DEFAULT_NEW][part]
    drawn = cache_steps.cache_figure(
        tokens, kept[part], without[part], LIGHT, generated=T + 1, first=part.start
    )
    drawn_n = end - part.start
    return figure(drawn, FULL, cache_steps.height(drawn_n), some(drawn_n, n, "positions"))


def known_models(T: int) -> Sent:
    del T
    rows = []
    for size in (*GPT2_SIZES, *KNOWN_MODELS):
        mha, mqa = (size.cache_bytes(1, n_kv_heads=n) for n in (size.n_heads, 1))
        actual = size.cache_bytes(1)
        rows.append(cache_sizes.CacheSize(size.name, (mha, actual, mqa), actual, size.kind))
    drawn = cache_sizes.cache_sizes_figure(rows, LIGHT)
    return figure(drawn, FULL, cache_sizes.height(len(rows)))


def tiles(T: int) -> Sent:
    steps, current = _tiles(T)
    tile = steps[current]
    weights = torch.exp(tile.scores - tile.m[..., None]).numpy()
    ranges = [(each.queries, each.keys) for each in steps]
    return figure(tiles_figure(ranges, current, weights, traced(T).tokens, LIGHT), HALF, HALF)


def running(T: int) -> Sent:
    steps, current = _tiles(T)
    tile = steps[current]
    panels = {
        "maximum m": (tile.m.numpy(), (-9.0, 9.0)),
        "sum ℓ": (tile.l.numpy(), (0.0, float(T))),
        "remaining": (tile.o.norm(dim=-1).numpy(), (0.0, 9.0)),
    }
    queries = tile.queries
    drawn = running_figure(traced(T).tokens[queries.start : queries.stop], panels, LIGHT)
    return figure(drawn, HALF, 440)


def _tiles(T: int) -> tuple[list[Tile], int]:
    trace, (layer, head) = traced(T), AT
    q, k, v = (torch.tensor(x[layer, head]) for x in (trace.q, trace.k, trace.v))
    steps = list(flash.tiles(q, k, v, block=flash_attention.BLOCKS[0], scale=trace.scales[layer]))
    return steps, len(steps) // 2


def mask(T: int) -> Sent:
    tokens = traced(T).tokens
    return figure(mask_figure(np.tri(T, dtype=np.bool_), tokens, tokens, LIGHT), HALF, HALF)


def pattern_under_mask(T: int) -> Sent:
    tokens, causal = traced(T).tokens, np.tri(T, dtype=np.bool_)
    drawn = masked_pattern(traced(T).pattern(*AT), causal, tokens, tokens, LIGHT)
    return figure(drawn, HALF, HALF)


def training(T: int) -> Sent:
    del T
    steps = np.arange(0, 5001, 50, dtype=np.float32)
    curves = [
        LossCurve(name, steps, *_random(2, 5, len(steps)).astype(np.float32))
        for name in ("1 head × 32", "4 heads × 8")
    ]
    return figure(loss_curves(curves, 4.17, 5000, LIGHT), 570, 420, GIVEN)


def training_patterns(T: int) -> Sent:
    del T
    models = [(f"{n} heads", _random(n, 8, 8).astype(np.float32)) for n in (1, 32)]
    drawn = pattern_mosaic(models, "the king", LIGHT)
    return figure(drawn, drawn.layout.width, drawn.layout.height, GIVEN)


def _random(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).random(shape)


LESSONS = (
    Shown("Walkthrough: three pictures of q", journey, most=walk.MAX_TOKENS),
    Shown("Memory layout", storage, any_text=True),
    Shown("A list of heads: fused projection or loop", timing, any_text=True),
    Shown("Output projection", reach, any_text=True),
    Shown("Grouped-query attention", sharing, any_text=True),
    Shown("KV cache: one step", kv_step, most=kv_cache.MAX_PROMPT),
    Shown("KV cache: sizes of well-known models", known_models, any_text=True),
    Shown("FlashAttention: peak memory", memory_chart, any_text=True),
    Shown("FlashAttention: tiles", tiles, most=flash_attention.MAX_TOKENS),
    Shown("FlashAttention: running values", running, most=flash_attention.MAX_TOKENS),
    Shown("Masks: mask", mask, most=masks.MAX_TOKENS),
    Shown("Masks: pattern under the mask", pattern_under_mask, most=masks.MAX_TOKENS),
    Shown("Training: losses", training, any_text=True),
    Shown("Training: patterns", training_patterns, any_text=True),
)
