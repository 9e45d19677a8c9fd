"""Split, view and transpose: a row of numbers becomes a piece for each head, and none moves.

The pictures of earlier steps stay, so the last frame of the transpose shows all three side by side.
"""

from collections.abc import Callable, Iterator

from mha_viz.figures.journey.parts import (
    LAST,
    arrow,
    at_end,
    cell_of,
    followed,
    head_labels,
    number,
    ring,
    row_of,
    shown,
    title,
    token_labels,
    words,
)
from mha_viz.figures.journey.place import PAD, Kind, Picture, triptych
from mha_viz.figures.journey.scene import (
    Box,
    Cells,
    Item,
    Line,
    Motion,
    Rect,
    Scene,
    Text,
    appears,
    leaves,
    stays,
)
from mha_viz.figures.journey.setting import Setting
from mha_viz.figures.journey.sheets import sheet_frames
from mha_viz.figures.journey.tape import tape

ORDER: tuple[Kind, ...] = ("rows", "trays", "sheets")
QUESTIONS = {
    "split": "Which columns are q? The first ones; then come k and v.",
    "view": "Where does a head end? After every d_h columns.",
    "transpose": "Which axis comes first, so that a head is a matrix?",
}
GHOST = 0.15  # opacity of k and v once q is taken

Frames = Callable[[int], tuple[int, int]]  # the first and the last frame in which a head moves


def split(setting: Setting) -> Scene:
    """The columns of q, k and v part; q stays where it is."""
    rows = triptych(setting, ORDER)[0]
    items = [*_k_and_v(setting), *_rows(setting, rows, 6)]
    return _scene(setting, "split", items, _of_rows(setting))


def view(setting: Setting) -> Scene:
    """Each row is cut into a piece for each head; a tray holds the pieces of a token."""
    rows = triptych(setting, ORDER)[0]
    items = [*_ghosts_leave(setting), *_rows(setting, rows), *_cut(setting)]
    return _scene(setting, "view", items, _of_trays(setting), "split")


def transpose(setting: Setting) -> Scene:
    """The pieces of a head come together in a sheet, head by head."""
    rows, trays, sheets = triptych(setting, ORDER)
    n = setting.layer.H

    def turn(head: int) -> tuple[int, int]:
        """H0 first, the last head in frame 8."""
        first = 3 + round(4 * head / max(n - 1, 1))
        return first, first + 1

    items = [
        *_rows(setting, rows),
        *map(at_end, _cut(setting)),
        *_moving(setting, trays, sheets, turn),
        *_sheets(setting, sheets, 9),
        _followed(setting, trays, sheets, turn),
        *_between(setting, trays, sheets, "turn", 3),
    ]
    return _scene(setting, "transpose", items, _of_sheets(setting), "split", "view")


def _cut(setting: Setting) -> list[Item]:
    """What the step `view` adds."""
    rows, trays, _ = triptych(setting, ORDER)

    def part(head: int) -> tuple[int, int]:
        """All heads at once."""
        return 4, 9

    return [
        *_cuts(setting, rows),
        *_moving(setting, rows, trays, part),
        *_trays(setting, trays, 10),
        _followed(setting, rows, trays, part),
        *_between(setting, rows, trays, "cut", 4),
    ]


def _scene(setting: Setting, step: str, items: list[Item], sentence: str, *before: str) -> Scene:
    """The pictures, and below them the memory that all three read."""
    pictures = triptych(setting, ORDER)
    shown_so_far = pictures if not setting.narrow else pictures[: len(before) + 1]
    below = shown_so_far[-1].corner.bottom
    if step == "split":
        below = max(below, *(place.bottom for place in fused_place(setting).values()))
    memory, height = tape(setting, step, below)
    shown = (*before, step)
    return Scene(step, QUESTIONS[step], height, (*items, *memory), sentence, shown, "transpose")


# ---- q as rows ----


def _rows(setting: Setting, picture: Picture, since: int = 0) -> Iterator[Item]:
    """q: a row for each token."""
    layer, focus = setting.layer, setting.focus
    width = "C" if layer.width == layer.C else "H d_h"
    shape = f"[T, {width}] = [{layer.T}, {layer.width}]"
    yield from title(setting, "q", shape, picture.left, picture.corner.y + 10, since)
    yield from token_labels(setting, picture.left, picture.top)
    for head, block in enumerate(picture.blocks):
        yield _piece(setting, head, stays(block, setting.opacity(head)))
    yield ring(setting, stays(picture.across(row_of(setting, picture.blocks[0], focus.token))))
    yield from head_labels(setting, picture.blocks, picture.bottom + 14, since)
    cell = cell_of(setting, picture.blocks[focus.head], focus.token, focus.element)
    yield followed(setting, shown(cell, since))
    yield from _words_under(setting, picture, _of_rows(setting), _index(setting, "rows"), since)


def _piece(setting: Setting, head: int, motion: Motion) -> Cells:
    """The cells of q that belong to a head, for all tokens."""
    layer = setting.layer
    crop = setting.crop(layer.column("q", head), layer.d_head, setting.pool)
    return Cells("qkv", crop, motion, (setting.gap, setting.gap))


def _k_and_v(setting: Setting) -> Iterator[Item]:
    """The other parts, k and v, beside q, or under it on a phone, until they fade."""
    layer = setting.layer
    for part, place in fused_place(setting).items():
        yield name_of_part(setting, part, place)
        if part == "q":
            continue
        width = place.width / layer.G
        for group in range(layer.G):
            column = layer.width + ((part == "v") * layer.G + group) * layer.d_head
            block = place._replace(x=place.x + group * width, width=width)
            crop = setting.crop(column, layer.d_head, setting.pool)
            opacity = setting.opacity(group * layer.H // layer.G)
            motion = Motion(block, block, 6, LAST, (opacity, GHOST))
            yield Cells("qkv", crop, motion, (setting.gap, setting.gap))


def name_of_part(setting: Setting, part: str, place: Rect, *, gone: bool = True) -> Text:
    """The name of q, k or v over its columns, which leaves when they are split."""
    at = Rect(place.centre[0], place.y - 16)
    motion = leaves(at, 6) if gone else stays(at)
    return Text(part, motion, setting.theme.ink, setting.text + 4, "middle", bold=True)


def fused_place(setting: Setting) -> dict[str, Rect]:
    """Where q, k and v lie side by side, or on a phone one under another; q where it stays."""
    layer, picture = setting.layer, triptych(setting, ORDER)[0]
    width = picture.right - picture.left
    q = Rect(picture.left, picture.top, width, setting.tall)
    k = q._replace(width=width * layer.G / layer.H)
    if setting.narrow:
        return {"q": q} | {p: k.moved(y=n * (setting.tall + 40)) for n, p in enumerate("kv", 1)}
    places = {p: k._replace(x=q.right + 6 + n * (k.width + 6)) for n, p in enumerate("kv")}
    return {"q": q} | places


def _ghosts_leave(setting: Setting) -> Iterator[Item]:
    for item in _k_and_v(setting):
        if isinstance(item, Cells):
            yield Cells(item.image, item.crop, leaves(item.motion.end, 0, 2, GHOST), item.gap)


# ---- view and transpose ----


def _cuts(setting: Setting, picture: Picture) -> Iterator[Item]:
    """Dashed lines between the heads, one after another, with the column where each cut is."""
    layer, ink = setting.layer, setting.theme.ink
    for head, block in list(enumerate(picture.blocks))[1:]:
        since = round(3 * (head - 1) / max(layer.H - 2, 1))
        line = Rect(block.x, block.y - 5, 0, block.height + 10)
        yield Line(appears(line, since), ink, 1.5, dashed=True)
        if block.width >= 2.6 * setting.text:
            column, y = str(head * layer.d_head), block.y - 12
            yield words(setting, column, block.x, y, since, mono=True, anchor="middle")


def _moving(setting: Setting, before: Picture, after: Picture, frames: Frames) -> Iterator[Item]:
    """The pieces of each head, with what is marked in them, on their way."""
    focus = setting.focus
    for head, (start, end) in enumerate(zip(before.blocks, after.blocks, strict=True)):
        first, last = frames(head)
        opacity = setting.opacity(head)
        yield _piece(setting, head, Motion(start, end, first, last, (opacity, opacity)))
        if after.kind == "sheets":
            rows = [row_of(setting, block, focus.token).grown(2) for block in (start, end)]
            yield ring(setting, Motion(rows[0], rows[1], first, last))


def _followed(setting: Setting, before: Picture, after: Picture, frames: Frames) -> Box:
    """The frame around the number that is followed, on its way with its head."""
    focus = setting.focus
    start, end = (
        cell_of(setting, picture.blocks[focus.head], focus.token, focus.element)
        for picture in (before, after)
    )
    return followed(setting, Motion(start, end, *frames(focus.head)))


def _trays(setting: Setting, picture: Picture, since: int) -> Iterator[Item]:
    """The frame of each token's pieces."""
    layer, focus, left = setting.layer, setting.focus, picture.left - PAD
    shape = f"[T, H, d_h] = [{layer.T}, {layer.H}, {layer.d_head}]"
    yield from title(setting, "view", shape, left, picture.corner.y + 10, since)
    line = setting.theme.control if setting.row >= 10 else setting.theme.hairline
    for token in range(layer.T):
        tray = picture.across(row_of(setting, picture.blocks[0], token), setting.gap / 2 - 0.5)
        if token != focus.token:
            yield Box(appears(tray, since), line, "", 1 if setting.row >= 10 else 0.5, 3)
    chosen = picture.across(row_of(setting, picture.blocks[0], focus.token))
    yield ring(setting, appears(chosen, since))
    yield from head_labels(setting, picture.blocks, picture.bottom + 14, since)
    if setting.narrow:
        yield from token_labels(setting, left, picture.top, since)
    said, index = _of_trays(setting), _index(setting, "trays")
    yield from _words_under(setting, picture, said, index, since)


def _sheets(setting: Setting, picture: Picture, since: int) -> Iterator[Item]:
    """The frame and the tab of each head's sheet."""
    layer, left = setting.layer, picture.left - PAD
    shape = f"[H, T, d_h] = [{layer.H}, {layer.T}, {layer.d_head}]"
    yield from title(setting, "transpose", shape, left, picture.corner.y + 10, since)
    yield from sheet_frames(setting, picture, since)
    said, index = _of_sheets(setting), _index(setting, "sheets")
    yield from _words_under(setting, picture, said, index, since)


def _between(
    setting: Setting, before: Picture, after: Picture, word: str, since: int
) -> list[Item]:
    """The arrow from one picture to the next."""
    if setting.narrow:
        start = Rect(setting.width / 2 - 60, before.corner.bottom + 4, 0, 34)
        said = {"cut": f"cut: c = {setting.layer.d_head} h + i", "turn": "turn: heads first"}
        return arrow(setting, start, said[word], since, down=True)
    y = row_of(setting, before.blocks[0], setting.focus.token).centre[1]
    x = before.right + 8
    return arrow(setting, Rect(x, y, after.left - PAD - 8 - x, 0), word, since, down=False)


# ---- words ----


def _words_under(
    setting: Setting, picture: Picture, said: str, index: str, since: int
) -> Iterator[Item]:
    """A sentence, and the number that is followed with its index in this picture."""
    x, y = picture.left - PAD * (picture.kind != "rows"), picture.corner.bottom - setting.line
    if setting.narrow:
        x = 0.0
    yield words(setting, said, x, y - 0.9 * setting.line, since)
    yield words(setting, index, x, y, since, colour=setting.theme.ink, bold=True, mono=True)
    if picture.kind != "rows":
        after = x + (len(index) + 1) * setting.letter
        yield words(setting, "the same number", after, y, since)


def _index(setting: Setting, kind: Kind) -> str:
    """The followed number by its index in a picture: q[6, 64] = −0.931."""
    layer, focus = setting.layer, setting.focus
    column = layer.column("q", focus.head, focus.element)
    places = {
        "rows": (focus.token, column),
        "trays": (focus.token, focus.head, focus.element),
        "sheets": (focus.head, focus.token, focus.element),
    }
    index = ", ".join(map(str, places[kind]))
    return f"q[{index}] = {number(float(layer.qkv[focus.token, column]))}"


def _of_rows(setting: Setting) -> str:
    layer, head = setting.layer, setting.focus.head
    first = head * layer.d_head
    columns = f"columns {first} to {first + layer.d_head - 1}"
    return f"A row per token. Head {layer.heads[head]}: {columns}."


def _of_trays(setting: Setting) -> str:
    layer = setting.layer
    trays = "1 tray, one per token," if layer.T == 1 else f"{layer.T} trays, one per token, each"
    pieces = "1 piece" if layer.H == 1 else f"{layer.H} pieces"
    return f"{trays} with {pieces} of {layer.d_head}."


def _of_sheets(setting: Setting) -> str:
    layer = setting.layer
    sheets = "1 sheet, one per head," if layer.H == 1 else f"{layer.H} sheets, one per head, each"
    return f"{sheets} with {layer.T} row{'s' * (layer.T != 1)}."
