"""Mask and softmax: the scores of each query become weights."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from mha_viz.figures.journey.parts import (
    LAST,
    followed,
    labelled,
    paragraph,
    ring,
    shown,
    title,
    token_labels,
    words,
)
from mha_viz.figures.journey.scene import (
    Cells,
    Crop,
    Item,
    Motion,
    Rect,
    Scene,
    Text,
    appears,
    stays,
)
from mha_viz.figures.journey.score_motion import DONE, height, scaled
from mha_viz.figures.journey.setting import Setting

TITLE = 24  # pixels of the title above the matrix and the tokens of the keys
SMALL = 14  # pixels between the matrices of all heads
COLUMNS = 8, 17, 25  # where those of the list end, in letters after the names of the keys


def mask(setting: Setting) -> Scene:
    """What lies above the diagonal goes, row by row."""
    layer = setting.layer
    shape = f"[H, T, T] = [{layer.H}, {layer.T}, {layer.T}]"
    items = [
        *matrix(setting, "mask", shape, "scores", "masked"),
        *chosen_row(setting, "score", masked=True, weights=False),
        *all_heads(setting, "scores", "masked"),
    ]
    hidden = layer.T - 1 - setting.focus.token
    sentence = f"{_token(setting)} may look at {setting.focus.token + 1} of {layer.T} tokens"
    sentence += (
        f"; {hidden} later {'one is' if hidden == 1 else 'ones are'} masked."
        if hidden
        else "; none is masked."
    )
    question = "Which keys may a query see? None that comes after it."
    return Scene("mask", question, height_of(setting), tuple(items), sentence, ("mask",))


def softmax(setting: Setting) -> Scene:
    """Each row becomes weights that add up to 1, one row after another."""
    layer, focus = setting.layer, setting.focus
    shape = f"[H, T, T] = [{layer.H}, {layer.T}, {layer.T}]"
    items = [
        *matrix(setting, "softmax", shape, "masked", "pattern"),
        *chosen_row(setting, "score", masked=True, weights=True),
        *all_heads(setting, "masked", "pattern"),
    ]
    row = np.nan_to_num(layer.pattern[focus.head, focus.token])
    best = int(row.argmax())
    sentence = f"{_token(setting)} looks at {layer.label(best)} with {row[best]:.2f}; "
    question = "How do scores become weights? Softmax: each row adds up to 1."
    sentence += "its weights add up to 1."
    return Scene("softmax", question, height_of(setting), tuple(items), sentence, ("softmax",))


def matrix_of(setting: Setting) -> Rect:
    """Where the matrix of the chosen head lies, in the steps scores, mask and softmax."""
    side = setting.tall + setting.gap
    room = setting.width - setting.gutter - 3 * setting.text
    return Rect(setting.gutter, _top(setting), min(side, room), side)


def _top(setting: Setting) -> float:
    """Where the matrices begin: below the title and the tokens of the keys, which are turned."""
    longest = max(len(setting.token_label(key)) for key in range(setting.layer.T))
    return TITLE + 12 + max(0.77 * longest * setting.letter, 2 * setting.line)


def height_of(setting: Setting) -> float:
    """The height of the scenes with matrices: scores, mask and softmax."""
    bottom = max(place.bottom for place in _places(setting)) + 2 * setting.line
    below = matrix_of(setting).bottom + 2.5 * setting.line
    return max(bottom, below, list_at(setting).bottom + setting.line)


def _token(setting: Setting) -> str:
    focus, layer = setting.focus, setting.layer
    return f"{layer.label(focus.token)} in head {layer.heads[focus.head]}"


# ---- the matrix of the chosen head ----


def matrix(setting: Setting, name: str, shape: str, before: str, after: str) -> Iterator[Item]:
    """The matrix of the chosen head; row by row, one image takes the place of the other."""
    layer, focus, place = setting.layer, setting.focus, matrix_of(setting)
    yield from title(setting, name, shape, 0, 10)
    yield from token_labels(setting, place.x, place.y)
    yield from _keys(setting, place)
    for token in range(layer.T):
        row = Rect(place.x, place.y + token * setting.row, place.width, setting.row)
        frame = _frame(setting, token) if before else LAST
        yield from _switch(setting, focus.head, row, before, after, frame, token)
    chosen = Rect(place.x, place.y + focus.token * setting.row, place.width, setting.row)
    yield ring(setting, stays(chosen.grown(1)))
    wide = place.width / layer.T
    at = chosen._replace(x=place.x + focus.key * wide, width=wide)
    if not before:  # one score is made before all of them
        crop = Crop(focus.key, focus.head * layer.T + focus.token, 1, 1)
        yield Cells(after, crop, appears(at, DONE))
    yield followed(setting, stays(at))
    said = f"head {layer.heads[focus.head]}: rows are queries, columns keys"
    yield words(setting, said, place.x if not setting.narrow else 0, place.bottom + setting.line)


def _frame(setting: Setting, token: int) -> int:
    """The frame in which the row of a token changes."""
    return 1 + round((LAST - 3) * token / max(setting.layer.T - 1, 1))


def _switch(
    setting: Setting, head: int, place: Rect, before: str, after: str, frame: int, token: int | None
) -> Iterator[Item]:
    """Rows of a head: one image until a frame, another from then on, and no grey between them."""
    T = setting.layer.T
    crop = Crop(0, head * T, T, T) if token is None else Crop(0, head * T + token, T, 1)
    opacity = 1.0
    if before:
        yield Cells(before, crop, Motion(place, place, frame, frame, (opacity, 0.0)))
    yield Cells(after, crop, appears(place, frame))


def _keys(setting: Setting, place: Rect) -> Iterator[Item]:
    """The tokens that are read, over their columns, turned."""
    layer, theme, focus = setting.layer, setting.theme, setting.focus
    wide = place.width / layer.T
    for key in labelled(layer.T, wide, setting.text + 1, focus.key):
        x = place.x + (key + 0.5) * wide
        yield Text(
            setting.token_label(key),
            stays(Rect(x, place.y - 6)),
            theme.key if key == focus.key else theme.muted,
            setting.text,
            bold=key == focus.key,
            mono=True,
            turned=True,
        )


# ---- the chosen row ----


def list_at(setting: Setting) -> Rect:
    """Where the list of the chosen row lies."""
    place = matrix_of(setting)
    high = max((len(_listed(setting)) + 2) * setting.line, height(setting))
    if setting.narrow:
        return Rect(0, place.bottom + 3 * setting.line, setting.width, high)
    x = max(place.right + 60, setting.gutter + 240)
    return Rect(x, _top(setting) - setting.line, _columns(setting, 0)[2], high)


def _columns(setting: Setting, x: float) -> tuple[float, float, float]:
    """Where the scores, their powers and the weights end, in a list whose keys begin at `x`."""
    keys = max(len(setting.token_label(key)) for key in _listed(setting))
    first, second, third = (x + (keys + n) * setting.letter for n in COLUMNS)
    return first, second, third


def _listed(setting: Setting) -> list[int]:
    """The keys of the chosen row that are listed: all, or those with the largest weights."""
    layer, focus, most = setting.layer, setting.focus, 12
    if most >= layer.T:
        return list(range(layer.T))
    row = np.nan_to_num(layer.pattern[focus.head, focus.token], nan=-1.0)
    best = sorted(np.argsort(-row)[: most - 1].tolist())
    return sorted({*best, focus.key})


def chosen_row(setting: Setting, name: str, *, masked: bool, weights: bool) -> Iterator[Item]:
    """The numbers of the chosen row, key by key: scores, and weights if they are there."""
    layer, focus, place = setting.layer, setting.focus, list_at(setting)
    ink, line = setting.theme.ink, setting.line
    columns = _columns(setting, place.x)
    since = _frame(setting, focus.token)
    there = 0 if masked else LAST  # scores are listed once they are there
    yield words(setting, "key", place.x, place.y, there, mono=True)
    yield words(setting, name, columns[0], place.y, there, mono=True, anchor="end")
    if weights:
        yield words(setting, "e^score", columns[1], place.y, since, mono=True, anchor="end")
        yield words(setting, "weight", columns[2], place.y, since, mono=True, anchor="end")
    row = layer.scores[focus.head, focus.token].astype(float)
    allowed = ~np.isnan(layer.pattern[focus.head, focus.token])
    highest = row[allowed].max()
    for n, key in enumerate(_listed(setting), 1):
        y = place.y + n * line
        at_key = key == focus.key
        yield words(setting, setting.token_label(key), place.x, y, there, mono=True, bold=at_key)
        score = f"{row[key]:.2f}".replace("-", "−")
        if allowed[key] or not masked:
            look: dict[str, Any] = {"colour": ink, "mono": True, "bold": at_key, "anchor": "end"}
            yield words(setting, score, columns[0], y, there, **look)
        else:
            yield from _masked(setting, score, columns[0], y, 0 if weights else since)
        if weights and allowed[key]:
            weight = float(layer.pattern[focus.head, focus.token, key])
            power = f"{np.exp(row[key] - highest):.3f}"
            yield words(setting, power, columns[1], y, since, colour=ink, mono=True, anchor="end")
            said = f"{weight:.2f}"
            yield words(
                setting,
                said,
                columns[2],
                y,
                since,
                colour=ink,
                mono=True,
                bold=at_key,
                anchor="end",
            )
    y = place.y + (len(_listed(setting)) + 1) * line
    if weights:
        yield words(setting, "sum 1.00", columns[2], y, since, colour=ink, mono=True, anchor="end")
        said = "e^score: after the largest score of the row was subtracted"
        yield from paragraph(setting, said, place.x, y + line, since, place.width)
    elif not masked:
        yield words(setting, scaled(setting), place.x, y, LAST, colour=ink, mono=True)


def _masked(setting: Setting, score: str, x: float, y: float, since: int) -> Iterator[Item]:
    """A score until it is masked, and then the word for it."""
    if since:
        motion = Motion(Rect(x, y), Rect(x, y), since, since, (1.0, 0.0))
        yield Text(score, motion, setting.theme.ink, setting.text, "end", mono=True)
    yield words(setting, "−∞", x, y, since, mono=True, anchor="end")


# ---- all heads ----


def _places(setting: Setting) -> list[Rect]:
    """Where the small matrices of all heads lie."""
    n, line = setting.layer.H, setting.line
    beside = list_at(setting)
    if setting.narrow:
        left, top, width = 0.0, beside.bottom + 2 * line, setting.width
        across = min(n, 3 if n <= 6 else 6)
    else:
        left, top = beside.right + 30, _top(setting)
        width = setting.width - left
        across = next(a for a in range(1, n + 1) if a * a >= n)
    side = min((width - (across - 1) * SMALL) / across, 120)
    down = side + 1.6 * line
    return [
        Rect(left + h % across * (side + SMALL), top + h // across * down, side, side)
        for h in range(n)
    ]


def all_heads(setting: Setting, before: str, after: str) -> Iterator[Item]:
    """The same for every head, at once when the chosen one is done."""
    layer, focus = setting.layer, setting.focus
    places = _places(setting)
    y = places[0].y - 2 * setting.line
    yield words(setting, "all heads at once: one axis more", places[0].x, y)
    for head, place in enumerate(places):
        yield from _switch(setting, head, place, before, after, LAST - bool(before), None)
        if head == focus.head:
            yield ring(setting, stays(place.grown(2)))
        yield Text(
            f"H{layer.heads[head]}",
            shown(Rect(place.centre[0], place.y - 0.6 * setting.line)),
            setting.names[head],
            setting.text,
            "middle",
            bold=head in focus.chosen,
            selects=("head", head),
        )
