"""The memory behind q: one tape of numbers, which view and transpose read with other strides."""

from collections.abc import Iterator

from mha_viz.figures.journey.parts import followed, number, ring, words
from mha_viz.figures.journey.scene import Box, Item, Line, Motion, Rect, Text, stays
from mha_viz.figures.journey.setting import Setting, contrast

HIGH = 24  # pixels of the tape
PALE = 0.5  # opacity of heads that are not chosen


def address(setting: Setting, token: int, head: int, element: int = 0) -> int:
    """Where q[head, token, element] lies in the memory of the fused product, in numbers."""
    return setting.layer.step * token + setting.layer.d_head * head + element


def tape(setting: Setting, step: str, y: float) -> tuple[list[Item], float]:
    """The part of the tape around the chosen token, from `y` down, and where it ends."""
    line, tokens = setting.line, neighbours(setting)
    top = y + line + 34
    items: list[Item] = [*_heading(setting, y + 10)]
    for token in tokens:
        items += _token(setting, token, tokens[0], top)
    items += _chosen(setting, tokens[0], top)
    if step != "split":
        items += _jumps(setting, tokens, top + HIGH)
    below = top + HIGH + line + 26
    formulas, bottom = _formulas(setting, step, below)
    return items + formulas, bottom


def neighbours(setting: Setting) -> range:
    """The tokens on the piece of tape: the chosen one between two others, if there are so many."""
    most = min(2 if setting.narrow else 3, setting.layer.T)
    first = min(max(setting.focus.token - 1, 0), setting.layer.T - most)
    if setting.narrow and setting.focus.token + 1 < setting.layer.T:
        first = setting.focus.token
    return range(first, first + most)


def unit(setting: Setting) -> float:
    """Pixels for one number: three tokens wide, on a phone one and the q of the next."""
    layer = setting.layer
    shown_numbers = layer.step + layer.width if setting.narrow else 3 * layer.step
    return setting.width / shown_numbers


def _heading(setting: Setting, y: float) -> Iterator[Item]:
    layer, theme = setting.layer, setting.theme
    n = layer.T * layer.step
    yield Text("In memory", stays(Rect(0, y)), theme.ink, setting.text + 4, bold=True)
    said = f"q, view and transpose are three ways to read this one tape of {n:,} numbers"
    said += ": q k v of each token, end to end"
    x = 0.66 * (setting.text + 4) * len("In memory") + 10
    yield words(setting, "nothing moves: one tape" if setting.narrow else said, x, y)


def _token(setting: Setting, token: int, first: int, top: float) -> Iterator[Item]:
    """The q of a token by head, and the room that its k and v take."""
    layer, theme, size = setting.layer, setting.theme, unit(setting)
    x = (token - first) * layer.step * size
    chosen = token == setting.focus.token
    label, y = setting.token_label(token), top - 12
    colour = theme.query if chosen else theme.muted
    yield words(setting, label, x, y, colour=colour, bold=chosen, mono=True)
    if not setting.narrow:
        start = f"from {address(setting, token, 0):,}"
        yield words(setting, start, x + (len(label) + 2) * setting.letter, y)
    for head in range(layer.H):
        yield from _head(setting, head, Rect(x + head * layer.d_head * size, top, 0, HIGH))
    if setting.narrow and token != first:
        return
    width = layer.G * layer.d_head * size
    for n, part in enumerate("kv"):
        place = Rect(x + layer.width * size + n * width, top, width - 1, HIGH)
        yield Box(stays(place), "", theme.hairline)
        name = f"{part}, {layer.G * layer.d_head} numbers"
        if len(name) * 0.5 * setting.text > width:
            name = part
        yield words(setting, name, *place.centre, colour=theme.ink, anchor="middle")


def _head(setting: Setting, head: int, at: Rect) -> Iterator[Item]:
    """The piece of a head on the tape, with its number where there is room."""
    layer, theme = setting.layer, setting.theme
    width, chosen = layer.d_head * unit(setting), head in setting.focus.chosen
    place = at._replace(width=max(width - 1, 0.5))
    yield Box(stays(place, 1 if chosen else PALE), "", setting.colours[head])
    name = str(layer.heads[head])
    if len(name) * setting.letter + 2 > width:
        return
    on_colour = max(theme.page, theme.ink, key=lambda c: contrast(c, setting.colours[head]))
    colour = on_colour if chosen else theme.ink
    yield words(setting, name, *place.centre, colour=colour, bold=chosen, anchor="middle")


def _chosen(setting: Setting, first: int, top: float) -> Iterator[Item]:
    """The frames around the chosen token's q and the number that is followed, with its address."""
    layer, focus, size = setting.layer, setting.focus, unit(setting)
    x = (focus.token - first) * layer.step * size
    yield ring(setting, stays(Rect(x, top, layer.width * size, HIGH).grown(1.5)))
    left = x + (focus.head * layer.d_head + focus.element) * size
    yield followed(setting, stays(Rect(left - 1, top - 3, max(size, 3), HIGH + 6)))
    if not setting.narrow:
        label = _address(setting)
        x += layer.step * size - 24 - len(label) * setting.letter
        yield words(setting, label, x, top - 12, colour=setting.theme.ink, bold=True, mono=True)


def _address(setting: Setting) -> str:
    """The address of the number that is followed, and the number."""
    layer, focus = setting.layer, setting.focus
    at = address(setting, focus.token, focus.head, focus.element)
    value = float(layer.qkv[focus.token, layer.column("q", focus.head, focus.element)])
    return f"address {at:,}: {number(value)}"


def _jumps(setting: Setting, tokens: range, y: float) -> Iterator[Item]:
    """From a head's piece of one token to that of the next: one stride."""
    layer, focus, size = setting.layer, setting.focus, unit(setting)
    colour = setting.names[focus.head]
    for n in range(len(tokens) - 1):
        x = (n * layer.step + (focus.head + 0.5) * layer.d_head) * size
        over = Rect(x, y + 2, layer.step * size, 0)
        yield Line(stays(over), colour, 2, arrow=True, bend=setting.line + 14)
        said = f"head {layer.heads[focus.head]}, next token: + {layer.step:,}"
        yield words(
            setting, said, over.centre[0], y + 12, colour=colour, bold=True, anchor="middle"
        )


def _formulas(setting: Setting, step: str, y: float) -> tuple[list[Item], float]:
    """Where an element lies, and the strides of the steps so far."""
    layer, ink = setting.layer, setting.theme.ink
    lines = 1.1 * setting.line
    said = f"element (t, h, i) lies at  {layer.step} t + {layer.d_head} h + i"
    items: list[Item] = [words(setting, said, 0, y, colour=ink, bold=True, mono=True)]
    x = 0.0 if setting.narrow else (len(said) + 4) * setting.letter
    if setting.narrow:
        items.append(words(setting, _address(setting), 0, y + lines, colour=ink, mono=True))
        y += 2 * lines
    items += _strides(setting, step, x, y)
    letter = "3C" if layer.G == layer.H and layer.width == layer.C else "(H + 2G) d_h"
    why = f"The token step is {letter}: k and v lie in between."
    if setting.narrow:
        y += 2 * lines
        items.append(words(setting, why, 0, y))
    else:
        if setting.text > 13:  # the strides of the transpose need the room
            y += 0.9 * setting.line
        items.append(words(setting, why, setting.width, y, anchor="end"))
    return items, y + setting.line


def _strides(setting: Setting, step: str, x: float, y: float) -> Iterator[Item]:
    """The strides: of q, then of its view, whose first two change places in the transpose."""
    layer, letter = setting.layer, setting.letter
    n, d_h = str(layer.step), str(layer.d_head)
    ink = setting.theme.ink
    if step == "split":
        yield words(setting, f"strides  q ({n}, 1)", x, y, colour=ink, mono=True)
        return
    since = 10 if step == "view" else 0
    if step == "view":
        gone = Motion(Rect(x, y), Rect(x, y), since, since, (1.0, 0.0))
        yield Text(f"strides  q ({n}, 1)", gone, ink, setting.text, mono=True)
    view = f"strides  view ({n}, {d_h}, 1)"
    yield words(setting, view, x, y, since, colour=ink, mono=True)
    if step != "transpose":
        return
    to = (0.0, y + 1.1 * setting.line) if setting.narrow else (x + (len(view) + 1) * letter, y)
    before = "strides  transpose (" if setting.narrow else "→ transpose ("
    hidden = [" " * len(d_h), " " * len(n)]
    frame = f"{before}{hidden[0]}, {hidden[1]}, 1)"
    yield words(setting, frame, *to, 3, colour=ink, mono=True)
    place = x + len("strides  view (") * letter, to[0] + len(before) * letter
    moves = {
        n: (place[0], place[1] + (len(d_h) + 2) * letter),
        d_h: (place[0] + (len(n) + 2) * letter, place[1]),
    }
    for text, (start, end) in moves.items():
        motion = Motion(Rect(start, y), Rect(end, to[1]), 3, 8)
        yield Text(text, motion, ink, setting.text, bold=True, mono=True)
