"""What all pictures of one layer share: its arrays, the focus, the room, sizes and colours."""

from dataclasses import dataclass
from functools import cached_property

from mha_viz.figures.journey.cells import pooling
from mha_viz.figures.journey.layer import Focus, Layer
from mha_viz.figures.journey.scene import Crop
from mha_viz.figures.shapes import head_colours
from mha_viz.figures.theme import NORMAL, TextSizes, Theme, rgb

WIDE, NARROW = 1104, 358  # pixels: a desktop without the sidebar, and a phone
FAINT = 0.42  # opacity of heads that are not chosen
TALLEST = 300  # pixels of the rows of all tokens, where they can be that low
HIGHEST_ROW, LOWEST_ROW = 20, 5  # pixels
MOST_TOKENS = 60  # that are drawn; more could not be told apart
CONTRAST = 4.5  # of a head's name with the page


@dataclass(frozen=True)
class Setting:
    """A layer and the focus in it, drawn `width` pixels wide in a theme."""

    layer: Layer
    focus: Focus
    theme: Theme
    width: float = WIDE
    sizes: TextSizes = NORMAL

    @property
    def narrow(self) -> bool:
        """Whether pictures lie one under another, as on a phone."""
        return self.width < 600

    @property
    def text(self) -> float:
        """The size of ordinary text in pixels."""
        return float(self.sizes.text)

    @property
    def row(self) -> float:
        """The height of a token, with the gap below it."""
        return max(LOWEST_ROW, min(HIGHEST_ROW, TALLEST // self.layer.T))

    @property
    def gap(self) -> float:
        """The pixels between two tokens."""
        return 4 if self.row >= 16 else 2 if self.row >= 10 else 1

    @property
    def line(self) -> float:
        """The height of a line of text."""
        return self.text * 5 / 3

    @cached_property
    def pool(self) -> int:
        """How many numbers of q, k and v a pixel of their images stands for."""
        return pooling(self.layer.step, self.layer.d_head)

    @cached_property
    def pool_of_z(self) -> int:
        """The same for z."""
        return pooling(self.layer.width, self.layer.d_head)

    @cached_property
    def pool_of_x(self) -> int:
        """The same for x, the output and the residual stream."""
        return pooling(self.layer.C, self.layer.C)

    @property
    def tall(self) -> float:
        """The height of all tokens."""
        return self.row * self.layer.T - self.gap

    @cached_property
    def gutter(self) -> float:
        """The width that the labels of the tokens need, left of a picture."""
        longest = max(len(self.token_label(t)) for t in range(self.layer.T))
        return longest * self.letter + 8

    @property
    def letter(self) -> float:
        """The width of a monospaced character."""
        return 0.6 * self.text

    def token_label(self, token: int) -> str:
        """The token of a position, shortened in the middle."""
        label, most = self.layer.label(token), 9 if self.narrow else 12
        half = most // 2
        return label if len(label) <= most else f"{label[:half]}…{label[half + 1 - most :]}"

    @cached_property
    def colours(self) -> list[str]:
        """The colour of each of the layer's heads."""
        every = head_colours(self.theme, max(self.layer.heads, default=0) + 1)
        return [every[head] for head in self.layer.heads]

    @cached_property
    def names(self) -> list[str]:
        """The colour in which each head's name can be read on the page."""
        return [readable(colour, self.theme) for colour in self.colours]

    def opacity(self, head: int) -> float:
        """1 for the chosen heads, less for the others."""
        return 1.0 if head in self.focus.chosen else FAINT

    def crop(self, column: int, columns: int, pool: int, rows: int | None = None) -> Crop:
        """Columns of an array as pixels of its image, for all tokens."""
        return Crop(column // pool, 0, max(columns // pool, 1), rows or self.layer.T)


def readable(colour: str, theme: Theme) -> str:
    """The colour, mixed with as much ink as makes its contrast with the page 4.5:1."""
    base, ink = rgb(colour), rgb(theme.ink)
    for share in range(0, 101, 5):
        mixed = [round(a + (b - a) * share / 100) for a, b in zip(base, ink, strict=True)]
        found = "#{:02X}{:02X}{:02X}".format(*mixed)
        if contrast(found, theme.page) >= CONTRAST:
            return found
    return theme.ink


def contrast(one: str, other: str) -> float:
    """The contrast of two colours, from 1 to 21 (WCAG 2.1)."""
    low, high = sorted(_luminance(colour) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    parts = (channel / 255 for channel in rgb(colour))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
