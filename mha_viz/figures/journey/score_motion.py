"""How one score is made, while the step scores plays: products rise, and their sum walks."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from mha_viz.figures.journey.parts import LAST, words
from mha_viz.figures.journey.scene import Box, Cells, Item, Line, Motion, Rect, Text
from mha_viz.figures.journey.setting import Setting
from mha_viz.figures.theme import diverging_colour
from mha_viz.trace import Array

STRIP = 14  # pixels of a row of q or k
BAR = 22  # of the longest bar
WALK = 36  # of the sum
LABEL = 18  # left of the strips
SUM = range(6, 10)  # the frames in which the sum walks
DONE = SUM.stop  # the frame in which the cell takes its colour


def products(setting: Setting) -> Array:
    """The `[d_h]` products of the chosen row of q and the chosen row of k."""
    layer, focus = setting.layer, setting.focus
    q, k = layer.column("q", focus.head), layer.column("k", focus.head)
    found: Array = (
        layer.qkv[focus.token, q : q + layer.d_head] * layer.qkv[focus.key, k : k + layer.d_head]
    )
    return found


def height(setting: Setting) -> float:
    """The pixels that it takes."""
    return 4 * setting.line + 2 * STRIP + 2 * BAR + WALK


def score_motion(setting: Setting, place: Rect, start: Rect) -> Iterator[Item]:
    """The row of q comes from `start`; all is gone in the last frame, where the results are."""
    for item in _items(setting, place, start):
        until = min(item.motion.until, LAST)
        yield replace(item, motion=replace(item.motion, until=until))


def _items(setting: Setting, place: Rect, start: Rect) -> Iterator[Item]:
    layer, focus, theme = setting.layer, setting.focus, setting.theme
    values, line = products(setting), setting.line
    said = f"q of {setting.token_label(focus.token)}, k of {setting.token_label(focus.key)}: "
    yield words(setting, f"{said}{layer.d_head} products", place.x, place.y)
    strip = Rect(place.x + LABEL, place.y + line, place.width - LABEL, STRIP)
    for part, row, begin in (("q", focus.token, start), ("k", focus.key, None)):
        crop = setting.crop(layer.column(part, focus.head), layer.d_head, setting.pool, 1)
        motion = Motion(begin or strip, strip, 0, 2, (1.0, 1.0) if begin else (0.0, 1.0))
        yield Cells("qkv", crop._replace(row=row), motion, asks=False)
        yield words(setting, part, place.x, strip.centre[1], colour=theme.ink, bold=True, mono=True)
        strip = strip.moved(y=STRIP + 4)
    zero = strip.y + BAR + 4
    yield from _bars(setting, values, strip._replace(y=zero))
    walk = strip._replace(y=zero + BAR + 8, height=WALK)
    yield from _walk(setting, values, walk)
    yield from _sums(setting, values, place.x, walk.bottom + line)


def _bars(setting: Setting, values: Array, zero: Rect) -> Iterator[Item]:
    """Each product as a bar that rises or falls from the line at 0, one after another."""
    theme, n = setting.theme, len(values)
    top, wide = float(np.abs(values).max()) or 1.0, zero.width / n
    axis = Rect(zero.x, zero.y, zero.width, 0)
    yield Line(Motion(axis, axis), theme.hairline)
    for i, value in enumerate(values.tolist()):
        high = BAR * abs(value) / top
        from_zero = Rect(zero.x + i * wide, zero.y, max(wide - 1, 0.8), 0)
        risen = from_zero._replace(y=zero.y - high * (value > 0), height=high)
        first = 1 + round(2 * i / max(n - 1, 1))
        colour = diverging_colour(theme, 0.75 * float(np.sign(value)))
        yield Box(Motion(from_zero, risen, first, first + 2, (0.0, 1.0)), "", colour)


def _walk(setting: Setting, values: Array, place: Rect) -> Iterator[Item]:
    """The sum of the products so far as steps, from left to right."""
    sums = np.concatenate([[0.0], np.cumsum(values.astype(float))])
    low, high = float(sums.min()), float(sums.max())
    ys = place.bottom - place.height * (sums - low) / ((high - low) or 1.0)
    wide = place.width / len(values)
    for i, (before, after) in enumerate(zip(ys[:-1].tolist(), ys[1:].tolist(), strict=True)):
        since, x = _frame_of(i, len(values)), place.x + i * wide
        for rect in (Rect(x, before, 0, after - before), Rect(x, after, wide, 0)):
            motion = Motion(rect, rect, since, since, (0.0, 1.0))
            yield Line(motion, setting.theme.ink, 1.5)


def _frame_of(product: int, n: int) -> int:
    """The frame in which a product is added."""
    return SUM.start + len(SUM) * product // n


def _sums(setting: Setting, values: Array, x: float, y: float) -> Iterator[Text]:
    """The sum so far, in each frame that changes it."""
    n, before = len(values), 0
    said = "sum so far: none"
    for frame in SUM:
        until = Motion(Rect(x, y), Rect(x, y), before, before, (0.0 if before else 1.0, 1.0), frame)
        yield Text(said, until, setting.theme.ink, setting.text, mono=True)
        added = sum(_frame_of(i, n) <= frame for i in range(n))
        said, before = f"sum so far: {signed(float(values[:added].sum()))}", frame
    last = Motion(Rect(x, y), Rect(x, y), before, before, (0.0, 1.0), DONE)
    yield Text(said, last, setting.theme.ink, setting.text, mono=True)
    yield words(setting, scaled(setting), x, y, DONE, colour=setting.theme.ink, mono=True)


def scaled(setting: Setting) -> str:
    """The sum, the scale and the score, “−16.61 ÷ √32 = −2.94”."""
    layer, focus = setting.layer, setting.focus
    score = float(layer.scores[focus.head, focus.token, focus.key])
    usual = bool(np.isclose(layer.scale, layer.d_head**-0.5))
    by = f"÷ √{layer.d_head}" if usual else f"× {layer.scale:g}"
    return f"{signed(float(products(setting).sum()))} {by} = {signed(score)}"


def signed(value: float) -> str:
    """A number with two decimals and a minus sign that is as wide as a plus."""
    return f"{value:.2f}".replace("-", "−")
