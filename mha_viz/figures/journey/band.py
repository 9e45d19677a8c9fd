"""The band of all steps: a miniature of each, all to one scale."""

from collections.abc import Iterator
from dataclasses import dataclass

from mha_viz.figures.journey.scene import Box, Item, Rect, stays
from mha_viz.figures.journey.setting import Setting

HIGH = 30  # pixels
TOKEN, CHANNEL = 3.0, 1 / 6  # pixels for one, unless there are too many
ROOM = 28, 97  # pixels for all tokens, and for all channels of q, k and v
PALE = 0.75  # opacity of what no head owns


@dataclass(frozen=True, slots=True)
class Miniature:
    """The small picture of a step, `width` pixels wide, and its axes in letters."""

    step: str
    shape: str
    sizes: str  # the shape in numbers
    width: float
    items: tuple[Item, ...]


def miniatures(setting: Setting) -> list[Miniature]:
    """One for each step, in order."""
    layer = setting.layer
    T, H, d_h, C = layer.T, layer.H, layer.d_head, layer.C
    plain = layer.G == H and layer.width == C
    of_q = "C" if layer.width == C else "H d_h"
    of_qkv = "3C" if plain else "(H+2G)d_h"
    found = []
    for step, (letters, sizes, draw) in {
        "x": ("[T, C]", (T, C), _stream),
        "q k v": (f"[T, {of_qkv}]", (T, layer.step), _fused),
        "split": (f"[T, {of_q}]", (T, layer.width), _rows),
        "view": ("[T, H, d_h]", (T, H, d_h), _trays),
        "transpose": ("[H, T, d_h]", (H, T, d_h), _sheets),
        "scores": ("[H, T, T]", (H, T, T), _squares),
        "mask": ("[H, T, T]", (H, T, T), _triangles),
        "softmax": ("[H, T, T]", (H, T, T), _triangles),
        "z": ("[H, T, d_h]", (H, T, d_h), _sheets),
        "merge": (f"[T, {of_q}]", (T, layer.width), _rows),
        "output": ("[T, C]", (T, C), _stream),
        "+ x": ("[T, C]", (T, C), _stream),
    }.items():
        items = tuple(draw(setting))
        width = max(item.motion.end.right for item in items)
        found.append(Miniature(step, letters, f"[{', '.join(map(str, sizes))}]", width, items))
    return found


def scale(setting: Setting) -> str:
    """What the pixels of every miniature stand for."""
    token, channel = _units(setting)
    of_channel = f"{channel:.2f}" if channel < 0.995 else f"{channel:.1f}"
    return f"Miniatures to one scale: a token {token:.2g} px, a channel {of_channel} px."


def _units(setting: Setting) -> tuple[float, float]:
    """Pixels for a token and for a channel."""
    layer = setting.layer
    return min(TOKEN, ROOM[0] / layer.T), min(CHANNEL, ROOM[1] / max(layer.step, 3 * layer.C))


def _box(x: float, y: float, width: float, height: float, fill: str, opacity: float = 1) -> Box:
    return Box(stays(Rect(x, y, max(width, 0.5), height), opacity), "", fill)


def _top(setting: Setting, height: float) -> float:
    """The upper edge of a picture in the middle of the band."""
    return max((HIGH - height) / 2, 0)


def _stream(setting: Setting) -> Iterator[Item]:
    token, channel = _units(setting)
    layer, height = setting.layer, token * setting.layer.T
    fill = setting.theme.control
    yield _box(0, _top(setting, height), layer.C * channel, height, fill, PALE)


def _fused(setting: Setting) -> Iterator[Item]:
    layer, (token, channel) = setting.layer, _units(setting)
    height, width = token * layer.T, layer.d_head * channel
    kv = [group * layer.H // layer.G for group in range(layer.G)]
    for n, head in enumerate([*range(layer.H), *kv, *kv]):
        x = n * width + (n >= layer.H) + (n >= layer.H + layer.G)
        yield _box(x, _top(setting, height), width, height, setting.colours[head])


def _rows(setting: Setting) -> Iterator[Item]:
    layer, (token, channel) = setting.layer, _units(setting)
    height, width = token * layer.T, layer.d_head * channel
    for head in range(layer.H):
        yield _box(head * width, _top(setting, height), width, height, setting.colours[head])


def _trays(setting: Setting) -> Iterator[Item]:
    """The rows cut into pieces; between two tokens as well, where there is room for it."""
    layer, (token, channel) = setting.layer, _units(setting)
    width, gap = layer.d_head * channel, min(3, 16 / layer.H)
    top, between = _top(setting, token * layer.T), 1 if token >= 2 else 0.35 * token
    for head in range(layer.H):
        x = head * (width + gap)
        for row in range(layer.T):
            y = top + row * token
            yield _box(x, y, width, token - between, setting.colours[head])


def _sheets(setting: Setting) -> Iterator[Item]:
    layer, (token, channel) = setting.layer, _units(setting)
    width, gap, height = layer.d_head * channel, min(7, 34 / layer.H), token * layer.T
    down = min(0.8, (HIGH - height) / layer.H)
    for head in range(layer.H):
        yield _box(head * (width + gap), head * down, width, height, setting.colours[head])


def _overlapping(setting: Setting) -> Iterator[tuple[int, float, float]]:
    """Each head with the place of its matrix; a later one lies over an earlier one."""
    layer, token = setting.layer, _units(setting)[0]
    side = token * layer.T
    across, down = min(6, 34 / layer.H), min(0.8, (HIGH - side) / layer.H)
    for head in range(layer.H):
        yield head, head * across, head * down


def _squares(setting: Setting) -> Iterator[Item]:
    side = _units(setting)[0] * setting.layer.T
    for head, x, y in _overlapping(setting):
        yield Box(stays(Rect(x, y, side, side)), setting.theme.page, setting.colours[head], 0.5)


def _triangles(setting: Setting) -> Iterator[Item]:
    """The same without what is masked."""
    layer, token = setting.layer, _units(setting)[0]
    for head, x, y in _overlapping(setting):
        if head < layer.H - 1:  # of a matrix that lies below others, only its left edge is seen
            side = token * layer.T
            yield _box(x, y, min(34 / layer.H, 6, side), side, setting.colours[head])
            continue
        for row in range(layer.T):
            yield _box(x, y + row * token, (row + 1) * token, token, setting.colours[head])
