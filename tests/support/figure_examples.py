"""Example inputs of every public figure: a partial of each function that lacks `theme` and `sizes`.

Wherever a figure takes text, one of the texts is EVIL.
"""

from functools import partial

import numpy as np

from mha_viz.analysis.dot_product import lines
from mha_viz.figures.bug_list import BugLoss, bug_list
from mha_viz.figures.cache_contents import CacheContents, Group, contents_figure
from mha_viz.figures.cache_sizes import KINDS, CacheSize, cache_sizes_figure
from mha_viz.figures.cache_steps import cache_figure
from mha_viz.figures.candidates import candidates_figure
from mha_viz.figures.cells import cell_map
from mha_viz.figures.compared_pattern import compared_pattern
from mha_viz.figures.contributions import contributions_figure
from mha_viz.figures.dot_product import dot_product_figure
from mha_viz.figures.grid import head_grid
from mha_viz.figures.head_map import head_map
from mha_viz.figures.head_pieces import head_pieces
from mha_viz.figures.head_view import head_view
from mha_viz.figures.heatmap import head_heatmap
from mha_viz.figures.lines import Line, line_chart
from mha_viz.figures.logit_effects import logit_effects
from mha_viz.figures.loss_curves import LossCurve, loss_curves
from mha_viz.figures.masks import mask_figure, masked_pattern
from mha_viz.figures.opinions import opinions_figure
from mha_viz.figures.paired_effects import paired_effects
from mha_viz.figures.pattern_mosaic import pattern_mosaic
from mha_viz.figures.pattern_pair import pattern_pair
from mha_viz.figures.predictions import compare_predictions
from mha_viz.figures.projection import projection_figure
from mha_viz.figures.pruning_curves import Curve, pruning_curves
from mha_viz.figures.recovery import RecoveryCurve, recovery_figure
from mha_viz.figures.scatter import rank_scatter
from mha_viz.figures.score_sum import score_sum_figure, scores_figure
from mha_viz.figures.sharing import sharing_figure
from mha_viz.figures.softmax_steps import SoftmaxRow, softmax_steps
from mha_viz.figures.storage import storage_figure
from mha_viz.figures.tiles import running_figure, tiles_figure
from mha_viz.figures.timing import Timed, timing_chart
from mha_viz.figures.token_grid import Grid, token_grid
from mha_viz.figures.token_losses import token_losses
from mha_viz.figures.top_tokens import top_tokens
from mha_viz.figures.trained_losses import trained_losses
from mha_viz.figures.values import matrix_heatmap
from mha_viz.figures.weighted_values import weighted_values_figure

EVIL = "<b>&$x$"
SAFE = "&lt;b&gt;&amp;&#36;x&#36;"
TOKENS = [EVIL, "The", "·king", "·gave", "·the", "·queen", "漢字"]
T = len(TOKENS)

_random = np.random.default_rng(0)
CAUSAL = np.tri(T, dtype=bool)
PATTERN = (np.tri(T) / np.arange(1, T + 1)[:, None]).astype(np.float32)
SCORES = np.where(CAUSAL, _random.standard_normal((T, T)), np.nan).astype(np.float32)
HEADS = _random.random((4, 8))
THUMBNAILS = _random.random((4, 8, 9, 9)).astype(np.float32)
TENSOR = _random.standard_normal((2, 4, 3, 5)).astype(np.float32)
VECTORS = _random.standard_normal((2, 8))
LOSSES = _random.random((3, T - 1)).astype(np.float32)
STEPS = np.array([0, 50, 100], dtype=np.float32)
TILES = [(range(4), range(4)), (range(4, 7), range(4)), (range(4, 7), range(4, 7))]
GRID = Grid(
    columns=TOKENS[:2],
    rows=[EVIL],
    tokens=[[EVIL, "a"]],
    probabilities=np.array([[0.9, 0.1]], dtype=np.float32),
    hovers=[[[EVIL], ["a", "p"]]],
    outlined=np.array([[True, False]]),
    notes=[(EVIL, [EVIL, "1"])],
    selected=1,
)

EXAMPLES = [
    partial(
        contents_figure,
        CacheContents(TOKENS[:3], 0, 2, 1, np.array([0.5, 0.5, 0.0], dtype=np.float32)),
        [Group(0, [0, 1])],
        1,
    ),
    partial(bug_list, [BugLoss(EVIL, 5.0, 6.0), BugLoss("B", 3.0)], 4.0, 8.3, selected=EVIL),
    partial(
        cache_sizes_figure,
        [CacheSize(EVIL, (64, 8, 1), 64, KINDS[0]), CacheSize("B", (64, 8, 1), 1, KINDS[2])],
    ),
    partial(
        cache_figure, TOKENS[:3], ["read", "computed", "not yet"], ["computed"] * 3, generated=2
    ),
    partial(candidates_figure, TOKENS[:3], [0.5, 0.3, 0.004], [0.7, 0.3, 0.0], 1),
    partial(cell_map, SCORES, TOKENS, colours="signed", top=3.0),
    partial(
        contributions_figure,
        TENSOR[0, :, 0],
        _random.standard_normal((4, 5, 9)).astype(np.float32),
        _random.standard_normal((4, 9)).astype(np.float32),
        tuple(_random.standard_normal((3, 9)).astype(np.float32)),
        heads=(0, 1, 3, 8),
        selected=2,
    ),
    partial(dot_product_figure, *VECTORS, range(8)),
    partial(head_grid, THUMBNAILS),
    partial(head_map, HEADS, bounds=(0.0, 1.0), selected=(1, 2), name=EVIL),
    partial(head_pieces, [(EVIL, 0), ("B", 9)], [("B", 1), (EVIL, 2)]),
    partial(head_view, [(EVIL, lines(PATTERN, most=2))], TOKENS),
    partial(head_heatmap, PATTERN, TOKENS, dim_sink=True),
    partial(line_chart, [1, 2], [Line(EVIL, [1, 2], "#123456")], x_title=EVIL, y_title=EVIL),
    partial(logit_effects, TOKENS[:2], [1.5, -0.25]),
    partial(loss_curves, [LossCurve(EVIL, STEPS, LOSSES[:, :3], LOSSES[:, 3:])], 4.17, 100),
    partial(mask_figure, CAUSAL, TOKENS, TOKENS),
    partial(masked_pattern, PATTERN, CAUSAL, TOKENS, TOKENS),
    partial(pattern_mosaic, [(EVIL, PATTERN[None])], EVIL),
    partial(pattern_pair, PATTERN, SCORES**2, TOKENS, most=("·king", "·king")),
    partial(compared_pattern, PATTERN, TOKENS, title=EVIL, query=T - 1, changed=[0]),
    partial(paired_effects, TOKENS[:2], [0.5, -0.3], [0.4, 0.0], names=(EVIL, "after")),
    partial(compare_predictions, TOKENS[:2], [0.5, 0.3], [0.4, 0.0], names=(EVIL, "after")),
    partial(
        projection_figure,
        SCORES[:, :6],
        _random.standard_normal((6, 24)).astype(np.float32),
        _random.standard_normal((T, 24)).astype(np.float32),
        TOKENS,
        heads=(0, 2, 3, 5),
        n_kv_heads=2,
        query=0,
        selected=1,
    ),
    partial(
        pruning_curves,
        [Curve(EVIL, [0, 1], [3, 4]), Curve("random", [0, 1], [3, 4], [3, 3], [3, 5])],
        uniform=4.1,
        budget=3.3,
        title=EVIL,
    ),
    partial(recovery_figure, [RecoveryCurve(EVIL, (0, 9), (2.0, 1.0))], selected=EVIL),
    partial(rank_scatter, HEADS, HEADS[::-1], selected=(1, 2), names=(EVIL, "gradient")),
    partial(opinions_figure, PATTERN, TOKENS, heads=range(len(PATTERN)), selected=1),
    partial(
        score_sum_figure,
        *VECTORS.astype(np.float32),
        (EVIL, "a"),
        scale=0.125,
        score=float(VECTORS.prod(axis=0).sum()) / 8,
    ),
    partial(scores_figure, SCORES, TOKENS, query=2, key=0),
    partial(sharing_figure, 8, 2, selected=3),
    partial(
        softmax_steps,
        [SoftmaxRow(EVIL, 0, 1.5, 1.0, 0.8), SoftmaxRow(EVIL, None, None, 0.2, 0.2)],
        selected=0,
    ),
    partial(
        storage_figure,
        np.arange(24).reshape(3, 2, 4).swapaxes(0, 1),
        np.arange(24),
        ("H", "T", "d_h"),
        selected=(1, 1, 3),
        before=np.arange(24).reshape(3, 2, 4).swapaxes(0, 1).ravel(),
    ),
    partial(tiles_figure, TILES, 1, np.full((3, 4), 0.25, dtype=np.float32), TOKENS),
    partial(running_figure, TOKENS[:2], {EVIL: (LOSSES[0, :2], (0, 1)), "n": (STEPS[:2], (0, 9))}),
    partial(
        timing_chart,
        [1, 2],
        {EVIL: [Timed(3.0, 2.0, 4.0)] * 2, "B": [Timed(3.0, 1.0, 9.0)] * 2},
        all_heads=[1, 2, 4],
    ),
    partial(token_grid, GRID),
    partial(top_tokens, [(EVIL, [(EVIL, 0.5), ("·king", 0.001)]), ("B", [("a", 1.0)])]),
    partial(trained_losses, [0, 1], [Line(EVIL, [4.0, 2.0], "#123456")]),
    partial(token_losses, TOKENS[::-1], LOSSES[0], LOSSES[1]),
    partial(
        weighted_values_figure,
        PATTERN[2],
        SCORES,
        SCORES[2],
        TOKENS,
        n_seen=3,
        query=2,
    ),
    partial(matrix_heatmap, SCORES, rows=EVIL, columns=EVIL, tokens=TOKENS),
]
