"""Arrays as images with a pixel for each number, in the colours of the app."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mha_viz.figures.journey.layer import Layer
from mha_viz.figures.pooling import pool_by_magnitude
from mha_viz.figures.shapes import FAINTEST, head_colours
from mha_viz.figures.theme import (
    ColourScale,
    Theme,
    colorscale,
    diverging_scale,
    rgb,
)
from mha_viz.trace import Array

COLUMNS = 1200  # of an image; of wider arrays, the largest of some neighbours is shown
LARGEST = 0.995  # the quantile of the magnitudes that has the strongest colour
LEVELS = 64  # of a colour: more could not be told apart, and would take longer to send

Pixels = NDArray[np.uint8]  # [rows, columns, 4]: red, green, blue, opacity


@dataclass(frozen=True, slots=True, eq=False)
class Image:
    """The pixels `[rows, columns, 4]` of an array; each column stands for `pool` numbers."""

    pixels: Pixels = field(repr=False)
    pool: int = 1


def images(layer: Layer, theme: Theme) -> dict[str, Image]:
    """The images of a layer's arrays, by the names that `Cells.image` has."""
    T, d_h = layer.T, layer.d_head
    kv_heads = layer.heads[:: layer.H // layer.G]
    square = (layer.H * T, T)
    allowed = np.where(np.isnan(layer.pattern), np.nan, layer.scores)
    top = largest(layer.scores)
    return {
        "x": signed(layer.x, theme),
        "resid": signed(layer.resid, theme),
        "out": signed(layer.out, theme),
        "added": signed(layer.out, theme, largest(layer.resid)),
        "sum": signed(layer.resid + layer.out, theme, largest(layer.resid)),
        "qkv": by_head(layer.qkv, (*layer.heads, *kv_heads, *kv_heads), theme, d_h),
        "z": by_head(layer.z, layer.heads, theme, d_h),
        "tape": written_twice(layer, theme),
        "scores": signed(layer.scores.reshape(square), theme, top),
        "masked": signed(allowed.reshape(square), theme, top),
        "pattern": weights(layer.pattern.reshape(square), theme),
    }


def largest(values: Array) -> float:
    """The magnitude that has the strongest colour."""
    finite = np.abs(values[np.isfinite(values)])
    return float(np.quantile(finite, LARGEST)) or 1.0 if finite.size else 1.0


def by_head(values: Array, owners: Sequence[int], theme: Theme, block: int) -> Image:
    """Each column in the colour of its head; a larger magnitude is more opaque.

    `owners` are the heads of the blocks of `block` columns.
    """
    pool = pooling(values.shape[1], block)
    pooled = pool_by_magnitude(np.abs(values), 1, pool)
    share = np.rint(np.sqrt(np.clip(pooled / largest(values), 0, 1)) * LEVELS) / LEVELS
    colours = head_colours(theme, max(owners) + 1)
    pixels = np.zeros((*pooled.shape, 4), np.uint8)
    of_columns = np.repeat(np.asarray(owners), block // pool)
    pixels[..., :3] = np.array([rgb(colour) for colour in colours])[of_columns]
    pixels[..., 3] = np.rint(255 * (FAINTEST + (1 - FAINTEST) * share))
    return Image(pixels, pool)


def written_twice(layer: Layer, theme: Theme) -> Image:
    """The pieces of z in the order of memory, `[2, H T, 4]`: before the merge, and after it."""
    every = np.arange(layer.H * layer.T)
    heads = np.stack([every // layer.T, every % layer.H])
    colours = head_colours(theme, max(layer.heads, default=0) + 1)
    table = np.array([rgb(colours[head]) for head in layer.heads], np.uint8)
    opaque = np.full((*heads.shape, 1), 255, np.uint8)
    return Image(np.concatenate([table[heads], opaque], axis=-1))


def signed(values: Array, theme: Theme, top: float | None = None) -> Image:
    """From blue below 0 to orange above; `top` has the strongest colour. NaN is blank."""
    pool = pooling(values.shape[1], values.shape[1])
    pooled = pool_by_magnitude(values, 1, pool)
    share = (pooled / (top or largest(values)) + 1) / 2
    return Image(coloured(share, diverging_scale(theme)), pool)


def weights(values: Array, theme: Theme) -> Image:
    """Violet, by the square root of the weight, as in every pattern. NaN is blank."""
    return Image(coloured(np.sqrt(values), colorscale(theme)))


def coloured(shares: NDArray[np.floating], scale: ColourScale) -> Pixels:
    """Shares from 0 to 1 as colours of a scale `[..., 4]`; NaN is transparent."""
    stops = np.array([at for at, _ in scale])
    channels = np.array([rgb(colour) for _, colour in scale]).T
    known = np.rint(np.clip(np.nan_to_num(shares), 0, 1) * LEVELS) / LEVELS
    mixed = [np.interp(known, stops, channel) for channel in channels]
    opacity = np.where(np.isnan(shares), 0, 255)
    pixels: Pixels = np.rint(np.stack([*mixed, opacity], axis=-1)).astype(np.uint8)
    return pixels


def pooling(columns: int, block: int) -> int:
    """How many columns become one: the smallest divisor of `block` that makes an image fit."""
    fitting = (n for n in range(1, block + 1) if block % n == 0 and columns // n <= COLUMNS)
    return next(fitting, block)
