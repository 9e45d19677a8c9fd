"""The steps that multiply or add: q k v, scores, z, output, and + x. Each shows its result form.

What is multiplied, number by number, is drawn in `projection`, `score_sum`, `weighted_values` and
`contributions`.
"""

from collections.abc import Iterator

import numpy as np

from mha_viz.figures.journey.heads import fused_place, name_of_part
from mha_viz.figures.journey.merge import ORDER as APART
from mha_viz.figures.journey.merge import sheets_of_z
from mha_viz.figures.journey.parts import (
    LAST,
    arrow,
    cell_of,
    followed,
    head_labels,
    labelled,
    number,
    paragraph,
    ring,
    row_of,
    title,
    token_labels,
    words,
)
from mha_viz.figures.journey.place import PAD, Picture, triptych
from mha_viz.figures.journey.scene import (
    Box,
    Cells,
    Crop,
    Item,
    Motion,
    Rect,
    Scene,
    appears,
    leaves,
    stays,
)
from mha_viz.figures.journey.score_motion import score_motion
from mha_viz.figures.journey.setting import Setting
from mha_viz.figures.journey.stream import rows_of
from mha_viz.figures.journey.weights import (
    all_heads,
    chosen_row,
    height_of,
    list_at,
    matrix,
)


def project(setting: Setting) -> Scene:
    """All of x @ W_QKV + b: the columns of each head, first all of q, then k and v."""
    layer, pool = setting.layer, setting.pool
    before = rows_of(setting)
    crop = Crop(0, 0, layer.C // setting.pool_of_x, layer.T)
    gap = setting.gap, setting.gap
    items: list[Item] = [Cells("x", crop, leaves(before, 0, 3), gap, asks=False)]
    blocks = list(_blocks(setting))
    for n, (column, block, head) in enumerate(blocks):
        first = 2 + round(6 * n / max(len(blocks) - 1, 1))
        motion = Motion(block, block, first, first + 2, (0.0, setting.opacity(head)))
        items.append(Cells("qkv", setting.crop(column, layer.d_head, pool), motion, gap))
    for part, place in fused_place(setting).items():
        items.append(name_of_part(setting, part, place, gone=False))
        items += _ringed(setting, part, place)
    places = list(fused_place(setting).values())
    items += token_labels(setting, places[0].x, places[0].y)
    y = max(place.bottom for place in places) + 2.2 * setting.line
    n = layer.H + 2 * layer.G
    said = f"{n} blocks of {layer.d_head} columns, one product: [T, C] @ [C, {layer.step}]. "
    said += f"Grey: the keys and values that head {layer.heads[setting.focus.head]} reads."
    lines = paragraph(setting, said, 0 if setting.narrow else places[0].x, y, 9)
    items += lines
    question = "What does one product make? q, k and v of all heads, side by side."
    return Scene("q k v", question, y + len(lines) * setting.line, tuple(items), said, ("q k v",))


def _blocks(setting: Setting) -> Iterator[tuple[int, Rect, int]]:
    """The first column, the place and the head of each block of q, k and v."""
    layer = setting.layer
    for part, place in fused_place(setting).items():
        n = layer.H if part == "q" else layer.G
        for i in range(n):
            head = i * layer.H // n
            width = place.width / n
            yield layer.column(part, head), place._replace(x=place.x + i * width, width=width), head


def _ringed(setting: Setting, part: str, place: Rect) -> Iterator[Item]:
    """The rings of what the head in focus reads and asks with, once it is there."""
    layer, focus = setting.layer, setting.focus
    n = layer.H if part == "q" else layer.G
    index = focus.head if part == "q" else layer.kv_head(focus.head)
    width = place.width / n
    block = place._replace(x=place.x + index * width, width=width)
    if part == "q":
        yield ring(setting, appears(row_of(setting, block, focus.token).grown(2), LAST))
        yield followed(setting, appears(cell_of(setting, block, focus.token, focus.element), LAST))
        labels = [place._replace(x=place.x + i * width, width=width) for i in range(n)]
        yield from head_labels(setting, labels, place.bottom + 14, 9)
    else:
        read = Rect(block.x, block.y, block.width, block.height).grown(1)
        yield Box(appears(read, LAST), setting.theme.control, "", 2, 2, setting.theme.page)


def scores(setting: Setting) -> Scene:
    """The products q @ k^T, times the scale: row by row, then in all heads at once."""
    layer, focus = setting.layer, setting.focus
    sheet = triptych(setting, ("rows", "trays", "sheets"))[2].blocks[focus.head]
    place = list_at(setting)
    crop = setting.crop(layer.column("q", focus.head), layer.d_head, setting.pool)
    start = row_of(
        setting, place if setting.narrow else sheet, 0 if setting.narrow else focus.token
    )
    shape = f"[H, T, T] = [{layer.H}, {layer.T}, {layer.T}]"
    items = [
        *matrix(setting, "scores", shape, "", "scores"),
        *chosen_row(setting, "score", masked=False, weights=False),
        *all_heads(setting, "", "scores"),
        *score_motion(setting, place, start),
    ]
    if not setting.narrow:
        items.insert(0, Cells("qkv", crop, leaves(sheet, 0, 3), (setting.gap,) * 2, asks=False))
    value = float(layer.scores[focus.head, focus.token, focus.key])
    sentence = (
        f"Query {layer.label(focus.token)}, key {layer.label(focus.key)}: score {number(value)} "
        f"in head {layer.heads[focus.head]}, before the mask."
    )
    question = "What is a score? A row of q times a row of k."
    return Scene("scores", question, height_of(setting), tuple(items), sentence, ("scores",))


def weighted_sum(setting: Setting) -> Scene:
    """The sums w @ v: the rows of v shrink to their weights and fall onto their sum."""
    layer, focus = setting.layer, setting.focus
    sheets = triptych(setting, APART)[0]
    items = [*_sheets_fill(setting, sheets), *sheets_of_z(setting, sheets, since=9)]
    left = sheets.right + PAD + setting.gutter + 64
    top = sheets.top
    if setting.narrow:
        left, top = setting.gutter + 46, sheets.corner.bottom + 3 * setting.line
    weighed, bottom = _weighed(setting, left, top)
    value = float(layer.z[focus.token, focus.head * layer.d_head + focus.element])
    sentence = (
        f"z of {layer.label(focus.token)} in head {layer.heads[focus.head]} is the weighted "
        f"mean of the rows of v; its element {focus.element} is {number(value)}."
    )
    question = "What does a head move? The rows of v, each times its weight, added up."
    height = max(sheets.corner.bottom, bottom)
    return Scene("z", question, height, (*items, *weighed), sentence, ("z",))


def _sheets_fill(setting: Setting, picture: Picture) -> Iterator[Item]:
    """The z of each head, one token after another."""
    layer, pool = setting.layer, setting.pool_of_z
    for token in range(layer.T):
        since = 2 + round(7 * token / max(layer.T - 1, 1))
        for head, block in enumerate(picture.blocks):
            crop = setting.crop(head * layer.d_head, layer.d_head, pool)
            row = row_of(setting, block, token)
            motion = appears(row, since, opacity=setting.opacity(head))
            yield Cells("z", crop._replace(row=token, rows=1), motion)


def _weighed(setting: Setting, left: float, top: float) -> tuple[list[Item], float]:
    """The weights of the chosen token beside the rows of v, and the row of z that they make."""
    layer, focus, theme = setting.layer, setting.focus, setting.theme
    width = min(setting.width - left - 8, 340)
    block = Rect(left, top, width, setting.tall)
    row = layer.pattern[focus.head, focus.token]
    named = set(labelled(layer.T, setting.row, setting.text + 1, focus.key))
    crop = setting.crop(layer.column("v", focus.head), layer.d_head, setting.pool)
    total = Rect(left, block.bottom + setting.line, width, max(setting.row - setting.gap, 10))
    said = f"weights of {setting.token_label(focus.token)}, head {layer.heads[focus.head]}"
    items: list[Item] = [
        words(setting, "v", left, top - 14, colour=theme.ink, bold=True),
        words(setting, said, left + 16, top - 14),
    ]
    items += token_labels(setting, left - 46, top)
    for key in range(layer.T):
        weight = float(row[key])
        at, one = row_of(setting, block, key), crop._replace(row=key, rows=1)
        y = at.centre[1]
        if np.isnan(weight):
            if key in named:
                items.append(words(setting, "hidden", left - 4, y, anchor="end"))
            continue
        if key in named:
            shown = f"{weight:.2f}" if weight >= 0.005 else "<.01"
            items.append(
                words(setting, shown, left - 6, y, colour=theme.ink, mono=True, anchor="end")
            )
        small = max(at.height * weight, 1)
        thin = Rect(at.x, y - small / 2, at.width, small)
        items.append(Cells("qkv", one, Motion(at, thin, 0, 5)))
        fallen = total._replace(y=total.bottom - small, height=small)
        items.append(Cells("qkv", one, Motion(thin, fallen, 6, 9, (0.0, 1.0)), asks=False))
    of_z = setting.crop(focus.head * layer.d_head, layer.d_head, setting.pool_of_z)
    items.append(Cells("z", of_z._replace(row=focus.token, rows=1), appears(total, 10)))
    items.append(ring(setting, appears(total.grown(2), 10)))
    items.append(
        words(
            setting, "z", left - 6, total.centre[1], 10, colour=theme.ink, bold=True, anchor="end"
        )
    )
    cell = Rect(
        total.x + focus.element * width / layer.d_head,
        total.y - 1,
        width / layer.d_head,
        total.height + 2,
    )
    items.append(followed(setting, appears(cell, 10)))
    return items, total.bottom + setting.line


def output(setting: Setting) -> Scene:
    """The rows z @ W_O + b: every number of a row depends on every head."""
    layer = setting.layer
    _, _, merged = triptych(setting, APART)
    first, second = _places(setting, 2)
    items: list[Item] = []
    n = layer.H
    for head, block in enumerate(merged.blocks):
        crop = setting.crop(head * layer.d_head, layer.d_head, setting.pool_of_z)
        to = Rect(first.x + head * first.width / n, first.y, first.width / n, first.height)
        start = block if not setting.narrow else to
        motion = Motion(start, to, 0, 4, (setting.opacity(head),) * 2)
        items.append(Cells("z", crop, motion, (setting.gap, setting.gap)))
    width = "C" if layer.width == layer.C else "H d_h"
    items += title(
        setting, "merge", f"[T, {width}] = [{layer.T}, {layer.width}]", first.x, first.y - 30
    )
    items += token_labels(setting, first.x, first.y)
    items += _filled(setting, "out", second, "output", 4)
    items += _signs(setting, (first, second), "@ W_O + b", 3)
    items += [ring(setting, stays(_row(setting, first).grown(2)))]
    y = second.bottom + setting.line
    said = f"W_O [{layer.width}, {layer.C}] mixes the heads: a row of z gives a row of the output."
    lines = paragraph(setting, said, 0 if setting.narrow else first.x, y)
    items += lines
    question = "What does the layer add? Each row of z, times W_O: what all heads write."
    return Scene("output", question, y + len(lines) * setting.line, tuple(items), said, ("output",))


def residual(setting: Setting) -> Scene:
    """The output, added to the residual stream."""
    layer, focus = setting.layer, setting.focus
    out, stream, total = _places(setting, 3)
    _, before = _places(setting, 2)
    crop = Crop(0, 0, layer.C // setting.pool_of_x, layer.T)
    gap = setting.gap, setting.gap
    start = out if setting.narrow else before
    shape = f"[T, C] = [{layer.T}, {layer.C}]"
    items: list[Item] = [
        Cells("added", crop, Motion(start, out, 0, 3), gap),
        Cells("resid", crop, stays(stream), gap),
        *title(setting, "output", shape, out.x, out.y - 30, 3),
        *title(setting, "stream", shape, stream.x, stream.y - 30),
        *token_labels(setting, out.x, out.y),
        *_filled(setting, "sum", total, "+ x", 4),
        *_signs(setting, (out, stream), "+", 3),
        *_signs(setting, (stream, total), "=", 4),
    ]
    items += [ring(setting, stays(_row(setting, place).grown(2))) for place in (out, stream)]
    lengths = [
        float(np.linalg.norm(values[focus.token]))
        for values in (layer.resid, layer.resid + layer.out)
    ]
    said = (
        f"The stream of {layer.label(focus.token)} had length {lengths[0]:.1f} and now has "
        f"{lengths[1]:.1f}. All three share one colour scale."
    )
    y = total.bottom + setting.line
    lines = paragraph(setting, said, 0 if setting.narrow else out.x, y)
    items += lines
    question = "Where does the output go? Onto the residual stream, which x was read from."
    return Scene("+ x", question, y + len(lines) * setting.line, tuple(items), said, ("+ x",))


def _places(setting: Setting, n: int) -> list[Rect]:
    """`n` places for rows of C numbers: side by side, or on a phone one under another."""
    top, high = 48.0, setting.tall
    if setting.narrow:
        width = setting.width - setting.gutter - 4
        return [Rect(setting.gutter, top + i * (high + 64), width, high) for i in range(n)]
    apart = 90.0 if n == 2 else 44.0
    width = min((setting.width - setting.gutter - 4 - (n - 1) * apart) / n, 420)
    return [Rect(setting.gutter + i * (width + apart), top, width, high) for i in range(n)]


def _row(setting: Setting, place: Rect) -> Rect:
    return row_of(setting, place, setting.focus.token)


def _filled(setting: Setting, image: str, place: Rect, name: str, first: int) -> Iterator[Item]:
    """Rows of C numbers that form one after another."""
    layer = setting.layer
    columns = layer.C // setting.pool_of_x
    yield from title(
        setting, name, f"[T, C] = [{layer.T}, {layer.C}]", place.x, place.y - 30, first
    )
    for token in range(layer.T):
        since = first + 1 + round((LAST - first - 2) * token / max(layer.T - 1, 1))
        row = appears(row_of(setting, place, token), since)
        yield Cells(image, Crop(0, token, columns, 1), row)
    yield ring(setting, appears(_row(setting, place).grown(2), LAST))
    if setting.narrow:
        yield from token_labels(setting, place.x, place.y)


def _signs(setting: Setting, places: tuple[Rect, Rect], sign: str, since: int) -> list[Item]:
    """What joins two pictures: an arrow with a word, or a plus or equals sign."""
    before, after = places
    if setting.narrow:
        x, y = setting.width / 2, before.bottom + 16
        return [words(setting, sign, x, y, since, colour=setting.theme.query, bold=True)]
    x, y = before.right, _row(setting, before).centre[1]
    if len(sign) == 1:
        middle = (x + after.x) / 2
        ink = setting.theme.ink
        return [words(setting, sign, middle, y, since, colour=ink, bold=True, anchor="middle")]
    way = Rect(x + 10, y, after.x - x - 20, 0)
    return arrow(setting, way, sign, since, down=False)
