"""Where the pictures of a reshape lie: plain rows, trays (one per token) and sheets (one per head).

Wide, they lie side by side, and a block of a head is equally large in all three, so that its cells
only move. On a phone they lie one under another, and the sheets in lines.
"""

from dataclasses import dataclass
from typing import Literal

from mha_viz.figures.journey.parts import TITLE
from mha_viz.figures.journey.scene import Rect
from mha_viz.figures.journey.setting import Setting

Kind = Literal["rows", "trays", "sheets"]
ARROW = 52  # between two pictures
BELOW = 82  # under the rows: names of heads, a sentence and an index
APART = 8, 48  # pixels between two pieces of a tray, and between all of them at most
SHEETS_APART = 10, 60
STEP_DOWN = 6, 36  # from one sheet to the next, and of all of them at most
PAD = 4  # between pieces and the frame of a tray or a sheet
TAB = 20  # the height of a sheet's tab


@dataclass(frozen=True, slots=True)
class Picture:
    """One of the pictures: its corner, and a block for each head with the rows of all tokens."""

    kind: Kind
    corner: Rect  # with the whole width and height, the words under it included
    blocks: tuple[Rect, ...]

    @property
    def left(self) -> float:
        """Where its words begin."""
        return self.blocks[0].x

    @property
    def top(self) -> float:
        """Where its first row begins."""
        return self.blocks[0].y

    @property
    def right(self) -> float:
        """Where its last block ends."""
        return max(block.right for block in self.blocks)

    @property
    def bottom(self) -> float:
        """Where its rows end."""
        return max(block.bottom for block in self.blocks)

    def across(self, row: Rect, by: float = 2) -> Rect:
        """The frame around a row of all blocks, `by` pixels larger above and below."""
        side = 2 if self.kind == "rows" else PAD
        left = self.left - side
        return Rect(left, row.y - by, self.right + side - left, row.height + 2 * by)


def triptych(setting: Setting, order: tuple[Kind, ...]) -> list[Picture]:
    """The three pictures in this order."""
    return _beneath(setting, order) if setting.narrow else _beside(setting, order)


def apart(n_heads: int, limits: tuple[float, float]) -> float:
    """The pixels between two of so many heads."""
    each, together = limits
    return min(each, together / max(n_heads, 1))


def _beside(setting: Setting, order: tuple[Kind, ...]) -> list[Picture]:
    n, room = setting.layer.H, setting.width - setting.gutter - 2 * ARROW - PAD
    between = apart(n, APART), apart(n, SHEETS_APART)
    block = (room - (n - 1) * sum(between) - 2 * PAD - 2 * PAD * n) / (3 * n)
    widths = {
        "rows": n * block,
        "trays": n * block + (n - 1) * between[0] + 2 * PAD,
        "sheets": n * (block + 2 * PAD) + (n - 1) * between[1],
    }
    height = TITLE + TAB + setting.tall + BELOW
    pictures, x = [], setting.gutter
    for kind in order:
        corner = Rect(x, 0, widths[kind], height)
        pictures.append(Picture(kind, corner, _blocks(setting, kind, corner, block)))
        x += widths[kind] + ARROW
    return pictures


def _blocks(setting: Setting, kind: Kind, corner: Rect, width: float) -> tuple[Rect, ...]:
    """The blocks of a picture as wide as its corner."""
    n, top = setting.layer.H, corner.y + TITLE + TAB
    x, pitch, down = corner.x, width, 0.0
    if kind == "trays":
        x, pitch = x + PAD, width + apart(n, APART)
    elif kind == "sheets":
        x, pitch = x + PAD, width + 2 * PAD + apart(n, SHEETS_APART)
        down = apart(n - 1, STEP_DOWN)
    tall = setting.tall
    return tuple(Rect(x + h * pitch, top + h * down, width, tall) for h in range(n))


def _beneath(setting: Setting, order: tuple[Kind, ...]) -> list[Picture]:
    pictures, y = [], 0.0
    for kind in order:
        blocks = _in_lines(setting, y) if kind == "sheets" else _in_row(setting, kind, y)
        bottom = max(block.bottom for block in blocks)
        corner = Rect(0, y, setting.width, bottom - y + BELOW)
        pictures.append(Picture(kind, corner, blocks))
        y = corner.bottom + ARROW
    return pictures


def _in_row(setting: Setting, kind: Kind, y: float) -> tuple[Rect, ...]:
    n = setting.layer.H
    room = setting.width - setting.gutter - PAD
    if kind == "trays":
        room -= (n - 1) * apart(n, APART) / 2 + 2 * PAD
    corner = Rect(setting.gutter, y - TAB + 4, 0, 0)
    width = room / n
    blocks = _blocks(setting, kind, corner, width)
    if kind == "trays":
        step = apart(n, APART) / 2
        return tuple(b._replace(x=blocks[0].x + h * (width + step)) for h, b in enumerate(blocks))
    return blocks


def _in_lines(setting: Setting, y: float) -> tuple[Rect, ...]:
    """Three sheets in a line, six where there are more than six heads."""
    n = setting.layer.H
    across = min(n, 3 if n <= 6 else 6)
    pitch = setting.width / across
    down = setting.tall + TAB + 3 * PAD
    return tuple(
        Rect(
            PAD + h % across * pitch,
            y + TITLE + TAB + h // across * down,
            pitch - 2 * PAD - 6,
            setting.tall,
        )
        for h in range(n)
    )
