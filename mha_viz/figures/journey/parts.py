"""What several pictures have: titles, labels of tokens and heads, rings, arrows and numbers."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from textwrap import wrap

from mha_viz.figures.journey.scene import (
    FRAMES,
    Anchor,
    Box,
    Cells,
    Item,
    Line,
    Motion,
    Rect,
    Text,
    appears,
    stays,
)
from mha_viz.figures.journey.setting import Setting

LAST = FRAMES - 1
TITLE = 28  # pixels from the top of a picture's title to its first row


def title(
    setting: Setting, name: str, shape: str, x: float, y: float, since: int = 0
) -> list[Item]:
    """The name of a picture and its shape, with letters and numbers."""
    size = setting.text
    at = Rect(x + len(name) * 0.62 * (size + 4) + 10, y)
    return [
        Text(name, shown(Rect(x, y), since), setting.theme.ink, size + 4, bold=True),
        Text(shape, shown(at, since), setting.theme.muted, size, mono=True),
    ]


def words(
    setting: Setting,
    text: str,
    x: float,
    y: float,
    since: int = 0,
    *,
    colour: str = "",
    bold: bool = False,
    mono: bool = False,
    anchor: Anchor = "start",
) -> Text:
    """A line of text, muted unless it has a colour."""
    colour = colour or setting.theme.muted
    motion = shown(Rect(x, y), since)
    return Text(text, motion, colour, setting.text, anchor, bold=bold, mono=mono)


def paragraph(
    setting: Setting, text: str, x: float, y: float, since: int = 0, width: float = 0
) -> list[Item]:
    """A sentence in as many lines as it needs, by default to the right edge."""
    room = max(int((width or setting.width - x) / (0.49 * setting.text)), 20)
    lines = wrap(text, room)
    return [words(setting, line, x, y + n * setting.line, since) for n, line in enumerate(lines)]


def shown(rect: Rect, since: int = 0) -> Motion:
    """The motion of what is there from the frame `since` on."""
    return stays(rect) if since <= 0 else appears(rect, since)


def token_labels(setting: Setting, x: float, top: float, since: int = 0) -> Iterator[Text]:
    """The tokens, right-aligned at `x`, from the first row at `top` down; every k-th if need be."""
    theme, chosen = setting.theme, setting.focus.token
    for token in labelled(setting.layer.T, setting.row, setting.text + 1, chosen):
        y = top + token * setting.row + (setting.row - setting.gap) / 2
        yield Text(
            setting.token_label(token),
            shown(Rect(x - 6, y), since),
            theme.query if token == chosen else theme.muted,
            setting.text,
            "end",
            bold=token == chosen,
            mono=True,
            selects=("token", token),
        )


def head_labels(
    setting: Setting, blocks: Sequence[Rect], y: float, since: int = 0
) -> Iterator[Text]:
    """The names of the heads under their blocks; every k-th if need be."""
    focus, heads = setting.focus, setting.layer.heads
    pitch = blocks[1].x - blocks[0].x if len(blocks) > 1 else blocks[0].width
    widest = 0.65 * setting.text * len(f"H{heads[-1]}") + 4
    for head in labelled(len(blocks), pitch, widest, *focus.chosen):
        yield Text(
            f"H{heads[head]}",
            shown(Rect(blocks[head].centre[0], y), since),
            setting.names[head],
            setting.text,
            "middle",
            bold=head in focus.chosen,
            selects=("head", head),
        )


def labelled(n: int, pitch: float, size: float, *chosen: int) -> list[int]:
    """Which of `n` labels have room: the chosen ones, and every k-th that is not near them."""
    every = max(1, -int(-size // pitch))
    return [
        i
        for i in range(n)
        if i in chosen or (i % every == 0 and all(abs(i - c) >= every for c in chosen))
    ]


def ring(setting: Setting, motion: Motion, *, thick: float = 2) -> Box:
    """The orange frame around what is selected, with a halo."""
    theme = setting.theme
    return Box(motion, theme.query, "", thick, 3, theme.page)


def followed(setting: Setting, motion: Motion) -> Box:
    """The frame around the number that is followed."""
    return Box(motion, setting.theme.ink, "", 2, 1, setting.theme.page)


def row_of(setting: Setting, block: Rect, token: int) -> Rect:
    """The row of a token in a block of all tokens."""
    height = setting.row - setting.gap
    return Rect(block.x, block.y + token * setting.row, block.width, height)


def cell_of(setting: Setting, block: Rect, token: int, element: int) -> Rect:
    """The cell of an element in the block of a head; at least 4 pixels wide."""
    row, d_h = row_of(setting, block, token), setting.layer.d_head
    width = max(row.width / d_h, 4)
    middle = row.x + (element + 0.5) * row.width / d_h
    left = min(max(middle - width / 2, row.x), row.right - width)
    return Rect(left, row.y - 1, width, row.height + 2)


def arrow(setting: Setting, start: Rect, word: str, since: int, *, down: bool) -> list[Item]:
    """An orange arrow, to the right or down, and the word for what happens."""
    theme = setting.theme
    drawn: Item = Line(shown(start, since), theme.query, 2, arrow=True)
    x, y = (start.x + 10, start.centre[1]) if down else (start.centre[0], start.y - 14)
    anchor: Anchor = "start" if down else "middle"
    return [drawn, words(setting, word, x, y, since, colour=theme.query, bold=True, anchor=anchor)]


def number(value: float) -> str:
    """A number with three decimals and a minus sign that is as wide as a plus."""
    return f"{value:.3f}".replace("-", "−")


def at_end(item: Item) -> Item:
    """The item as it is in the last frame, in all frames."""
    motion = stays(*item.motion.at(LAST))
    if isinstance(item, Cells):
        return replace(item, motion=motion, gap=(item.gap[1], item.gap[1]))
    return replace(item, motion=motion)
