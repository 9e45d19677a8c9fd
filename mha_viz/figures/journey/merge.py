"""Merge: the heads of a position become one row again, and z is written anew in memory."""

from collections.abc import Iterator

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
    Crop,
    Item,
    Line,
    Motion,
    Rect,
    Scene,
    appears,
    stays,
)
from mha_viz.figures.journey.setting import Setting
from mha_viz.figures.journey.sheets import sheet_frames

ORDER: tuple[Kind, ...] = ("sheets", "trays", "rows")
HIGH = 20  # pixels of a tape
TURN = 0, 3  # the frames of the transpose; then the tape is written


def merge(setting: Setting) -> Scene:
    """The sheets come apart into trays; then the pieces are copied, token by token."""
    sheets, trays, rows = triptych(setting, ORDER)
    layer = setting.layer
    items = [
        *_sheets(setting, sheets),
        *_trays(setting, sheets, trays),
        *_rows(setting, trays, rows),
        *_arrows(setting, sheets, trays, rows),
    ]
    tapes, height = _tapes(setting, rows.corner.bottom)
    question = "How do the heads become one row again? By a copy."
    width = "C" if layer.width == layer.C else "H d_h"
    sentence = (
        f"{_said(setting)['sheets']} They become rows [T, {width}] = [{layer.T}, {layer.width}], "
        f"and every number is copied once."
    )
    return Scene("merge", question, height, (*items, *tapes), sentence, ("merge",))


def address(setting: Setting, token: int, head: int, element: int = 0) -> tuple[int, int]:
    """Where z[head, token, element] lies in memory before the merge, and after it."""
    layer = setting.layer
    before = (head * layer.T + token) * layer.d_head + element
    return before, (token * layer.H + head) * layer.d_head + element


def written(setting: Setting, token: int) -> int:
    """The frame in which the pieces of a token are copied."""
    return 5 + round(5 * token / max(setting.layer.T - 1, 1))


# ---- the pictures ----


def _sheets(setting: Setting, picture: Picture) -> Iterator[Item]:
    for head, block in enumerate(picture.blocks):
        yield _piece(setting, head, stays(block, setting.opacity(head)))
    yield from sheets_of_z(setting, picture)


def sheets_of_z(setting: Setting, picture: Picture, since: int = 0) -> Iterator[Item]:
    """What is around the cells of z: frames, tabs, rings and words."""
    layer = setting.layer
    shape = f"[H, T, d_h] = [{layer.H}, {layer.T}, {layer.d_head}]"
    yield from title(setting, "z", shape, picture.left - PAD, picture.corner.y + 10)
    if not setting.narrow:
        yield from token_labels(setting, picture.left - PAD, picture.top)
    yield from map(at_end, sheet_frames(setting, picture, 0))
    for block in picture.blocks:
        row = row_of(setting, block, setting.focus.token).grown(2)
        yield ring(setting, shown(row, since))
    yield _followed(setting, shown(_cell(setting, picture), since))
    yield from _words(setting, picture, "sheets", since)


def _trays(setting: Setting, before: Picture, picture: Picture) -> Iterator[Item]:
    layer, focus = setting.layer, setting.focus
    shape = f"[T, H, d_h] = [{layer.T}, {layer.H}, {layer.d_head}]"
    left = picture.left - PAD
    yield from title(setting, "transpose", shape, left, picture.corner.y + 10, 4)
    for head, (start, end) in enumerate(zip(before.blocks, picture.blocks, strict=True)):
        opacity = setting.opacity(head)
        yield _piece(setting, head, Motion(start, end, *TURN, (0.0, opacity)))
    line = setting.theme.control if setting.row >= 10 else setting.theme.hairline
    for token in range(layer.T):
        tray = picture.across(row_of(setting, picture.blocks[0], token), setting.gap / 2 - 0.5)
        if token != focus.token:
            yield Box(appears(tray, 4), line, "", 1 if setting.row >= 10 else 0.5, 3)
    chosen = picture.across(row_of(setting, picture.blocks[0], focus.token))
    yield ring(setting, appears(chosen, 4))
    yield from head_labels(setting, picture.blocks, picture.bottom + 14, 4)
    if setting.narrow:
        yield from token_labels(setting, left, picture.top, 4)
    yield _followed(setting, appears(_cell(setting, picture), 4))
    yield from _words(setting, picture, "trays", 4)


def _rows(setting: Setting, before: Picture, picture: Picture) -> Iterator[Item]:
    layer, focus = setting.layer, setting.focus
    width = "C" if layer.width == layer.C else "H d_h"
    shape = f"[T, {width}] = [{layer.T}, {layer.width}]"
    yield from title(setting, "merge", shape, picture.left, picture.corner.y + 10, LAST)
    for token in range(layer.T):
        frame = written(setting, token)
        for head, (start, end) in enumerate(zip(before.blocks, picture.blocks, strict=True)):
            rows = [row_of(setting, block, token) for block in (start, end)]
            motion = Motion(rows[0], rows[1], frame - 1, frame, (0.0, setting.opacity(head)))
            yield _piece(setting, head, motion, token)
    yield from head_labels(setting, picture.blocks, picture.bottom + 14, LAST)
    across = picture.across(row_of(setting, picture.blocks[0], focus.token))
    yield ring(setting, appears(across, LAST))
    if setting.narrow:
        yield from token_labels(setting, picture.left, picture.top, 4)
    yield _followed(setting, appears(_cell(setting, picture), LAST))
    yield from _words(setting, picture, "rows", LAST)


def _piece(setting: Setting, head: int, motion: Motion, token: int | None = None) -> Cells:
    """The cells of z that belong to a head: for all tokens, or for one."""
    layer, pool = setting.layer, setting.pool_of_z
    crop = setting.crop(head * layer.d_head, layer.d_head, pool)
    if token is None:
        return Cells("z", crop, motion, (setting.gap, setting.gap))
    return Cells("z", crop._replace(row=token, rows=1), motion)


def _cell(setting: Setting, picture: Picture) -> Rect:
    focus = setting.focus
    return cell_of(setting, picture.blocks[focus.head], focus.token, focus.element)


def _followed(setting: Setting, motion: Motion) -> Box:
    return followed(setting, motion)


def _arrows(setting: Setting, *pictures: Picture) -> Iterator[Item]:
    steps = ("turn", 1), ("copy", 5)
    for before, after, (word, since) in zip(pictures, pictures[1:], steps, strict=False):
        if setting.narrow:
            start = Rect(setting.width / 2 - 60, before.corner.bottom + 4, 0, 34)
            said = {"turn": "turn: tokens first", "copy": "copy: c = d_h h + i"}[word]
            yield from arrow(setting, start, said, since, down=True)
            continue
        y = row_of(setting, after.blocks[0], setting.focus.token).centre[1]
        x = before.right + PAD + 6
        right = after.left - (PAD + 6 if after.kind == "trays" else 8)
        yield from arrow(setting, Rect(x, y, right - x, 0), word, since, down=False)


def _words(setting: Setting, picture: Picture, kind: Kind, since: int) -> Iterator[Item]:
    """A sentence, and the number that is followed with its index in this picture."""
    layer, focus = setting.layer, setting.focus
    x, y = picture.left - PAD * (kind != "rows"), picture.corner.bottom - setting.line
    if setting.narrow:
        x = 0.0
    column = focus.head * layer.d_head + focus.element
    places = {
        "sheets": (focus.head, focus.token, focus.element),
        "trays": (focus.token, focus.head, focus.element),
        "rows": (focus.token, column),
    }
    index = f"z[{', '.join(map(str, places[kind]))}]"
    value = f"{index} = {number(float(layer.z[focus.token, column]))}"
    ink = setting.theme.ink
    yield words(setting, _said(setting)[kind], x, y - 0.9 * setting.line, since)
    yield words(setting, value, x, y, since, colour=ink, bold=True, mono=True)


def _said(setting: Setting) -> dict[str, str]:
    layer = setting.layer
    return {
        "sheets": f"{layer.H} sheet{'s' * (layer.H != 1)}, one per head.",
        "trays": "The same memory, tokens first.",
        "rows": "One row per token: a new tape.",
    }


# ---- memory ----


def _tapes(setting: Setting, y: float) -> tuple[list[Item], float]:
    """The memory of z, head by head, and the new one, token by token."""
    layer, theme, focus = setting.layer, setting.theme, setting.focus
    n, size = layer.H * layer.T, setting.width / (layer.H * layer.T)
    old = y + setting.line + 32
    new = old + HIGH + 44
    said = f"z is written again: {layer.T * layer.width:,} numbers, each once"
    x = 0.66 * (setting.text + 4) * len("In memory") + 10
    heading = title(setting, "In memory", "", 0, y + 10)[:1]
    items: list[Item] = [*heading, words(setting, said, x, y + 10)]
    before = f"before: head by head, strides ({layer.T * layer.d_head}, {layer.d_head}, 1)"
    after = f"after: token by token, strides ({layer.width}, 1)"
    items += [words(setting, before, 0, old - 12, mono=True)]
    items += [words(setting, after, 0, new + HIGH + 14, 5, mono=True)]
    items.append(
        Cells("tape", Crop(0, 0, n, 1), stays(Rect(0, old, setting.width, HIGH)), asks=False)
    )
    items += _copies(setting, old, new, size)
    at = address(setting, focus.token, focus.head, focus.element)
    for place, (top, since) in zip(
        at, ((old, 0), (new, written(setting, focus.token))), strict=True
    ):
        left = place / layer.d_head * size
        box = Rect(left - 1, top - 3, max(size / layer.d_head, 3), HIGH + 6)
        items.append(followed(setting, appears(box, since) if since else stays(box)))
    said = f"address {at[0]:,} → {at[1]:,}"
    items.append(
        words(
            setting,
            said,
            setting.width,
            old - 12,
            colour=theme.ink,
            bold=True,
            mono=True,
            anchor="end",
        )
    )
    return items, new + HIGH + 14 + setting.line


def _copies(setting: Setting, old: float, new: float, size: float) -> Iterator[Item]:
    """Each token's pieces on the new tape, and the ways of the chosen token's."""
    layer, focus = setting.layer, setting.focus
    for token in range(layer.T):
        place = Rect(token * layer.H * size, new, layer.H * size, HIGH)
        crop = Crop(token * layer.H, 1, layer.H, 1)
        since = written(setting, token)
        yield Cells("tape", crop, appears(place, since), asks=False)
    since = written(setting, focus.token)
    for head in range(layer.H):
        start = ((head * layer.T + focus.token + 0.5) * size, old + HIGH + 1)
        end = ((focus.token * layer.H + head + 0.5) * size, new - 3)
        way = Rect(*start, end[0] - start[0], end[1] - start[1])
        thick = 2 if head in focus.chosen else 1
        yield Line(appears(way, since), setting.names[head], thick, arrow=True)
    chosen = Rect(focus.token * layer.H * size, new, layer.H * size, HIGH)
    yield ring(setting, appears(chosen.grown(1.5), since))
