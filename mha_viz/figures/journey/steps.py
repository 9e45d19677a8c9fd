"""The twelve steps of the journey, in order, and the function that lays out each."""

from collections.abc import Callable

from mha_viz.figures.journey import heads, merge, products, stream, weights
from mha_viz.figures.journey.scene import Scene
from mha_viz.figures.journey.setting import Setting

STEPS: dict[str, Callable[[Setting], Scene]] = {
    "x": stream.read,
    "q k v": products.project,
    "split": heads.split,
    "view": heads.view,
    "transpose": heads.transpose,
    "scores": products.scores,
    "mask": weights.mask,
    "softmax": weights.softmax,
    "z": products.weighted_sum,
    "merge": merge.merge,
    "output": products.output,
    "+ x": products.residual,
}
