"""What a moving picture consists of: cells, boxes, lines and texts, each with its motion.

A scene has twelve frames. Everything moves on a straight line from its start to its end, eased in
and out; an opacity changes in the same way, a colour never does. `Motion.at` is the same function
as `at` in journey/motion.js, which draws the frames in the browser.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

FRAMES = 12  # of a step
Anchor = Literal["start", "middle", "end"]


class Rect(NamedTuple):
    """A rectangle in pixels of the scene, from its upper left corner."""

    x: float
    y: float
    width: float = 0
    height: float = 0

    @property
    def right(self) -> float:
        """The right edge."""
        return self.x + self.width

    @property
    def bottom(self) -> float:
        """The lower edge."""
        return self.y + self.height

    @property
    def centre(self) -> tuple[float, float]:
        """The point in the middle."""
        return self.x + self.width / 2, self.y + self.height / 2

    def moved(self, x: float = 0, y: float = 0) -> "Rect":
        """The same rectangle elsewhere."""
        return self._replace(x=self.x + x, y=self.y + y)

    def grown(self, by: float) -> "Rect":
        """A rectangle that is larger by so many pixels on each side."""
        return Rect(self.x - by, self.y - by, self.width + 2 * by, self.height + 2 * by)


class Crop(NamedTuple):
    """The part of an image that is shown, in its pixels: one for each cell."""

    column: int
    row: int
    columns: int
    rows: int


@dataclass(frozen=True, slots=True)
class Motion:
    """Where something is, and how opaque, in each frame of a scene.

    It moves in the frames from `first` to `last`: until then it is at its start, from the last one
    on at its end.
    """

    start: Rect
    end: Rect
    first: int = 0
    last: int = FRAMES - 1
    opacity: tuple[float, float] = (1.0, 1.0)  # at the start and at the end
    until: int = FRAMES  # the frame from which on it is gone

    def at(self, frame: float) -> tuple[Rect, float]:
        """The rectangle and the opacity in a frame; -1 is the state before the scene."""
        share = self.share(frame)
        rect = (a + (b - a) * share for a, b in zip(self.start, self.end, strict=True))
        before, after = self.opacity
        seen = before + (after - before) * share if frame < self.until else 0.0
        return Rect(*rect), seen

    def share(self, frame: float) -> float:
        """How much of the motion is done in a frame, from 0 to 1."""
        return eased((frame - self.first + 1) / (self.last - self.first + 1))


def eased(share: float) -> float:
    """How much of a motion is done when `share` of its time has passed, from 0 to 1."""
    share = min(max(share, 0.0), 1.0)
    return share * share * (3 - 2 * share)


def stays(rect: Rect, opacity: float = 1.0) -> Motion:
    """The motion of what is there in all frames."""
    return Motion(rect, rect, opacity=(opacity, opacity))


def appears(rect: Rect, first: int, last: int | None = None, opacity: float = 1.0) -> Motion:
    """The motion of what fades in from the frame `first` to `last`, by default at once."""
    return Motion(rect, rect, first, first if last is None else last, (0.0, opacity))


def leaves(rect: Rect, first: int, last: int | None = None, opacity: float = 1.0) -> Motion:
    """The motion of what fades out from the frame `first` to `last`, by default at once."""
    return Motion(rect, rect, first, first if last is None else last, (opacity, 0.0))


@dataclass(frozen=True, slots=True)
class Cells:
    """A part of an image: each of its pixels is one cell.

    `gap` is the number of pixels between two rows at the start and at the end. A click on a cell
    selects what `Image.cells` says of it, unless `asks` is False.
    """

    image: str
    crop: Crop
    motion: Motion
    gap: tuple[float, float] = (0.0, 0.0)
    asks: bool = True


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle with a line around it, a fill, or both; a colour is "" for none.

    `halo` is the colour of a line of one pixel around it, which sets it off from what is below.
    """

    motion: Motion
    line: str = ""
    fill: str = ""
    thickness: float = 1.0
    radius: float = 0.0
    halo: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A line from the upper left corner of its rectangle to the lower right one.

    `bend` moves its middle down by so many pixels. Widths and heights may be negative.
    """

    motion: Motion
    colour: str
    thickness: float = 1.0
    dashed: bool = False
    arrow: bool = False
    bend: float = 0.0


@dataclass(frozen=True, slots=True)
class Text:
    """Text whose anchor, in the middle of its height, is the corner of its rectangle.

    A click selects the token or the head of `selects`, ("token", 6) for example.
    """

    text: str
    motion: Motion
    colour: str
    size: float = 12.0
    anchor: Anchor = "start"
    bold: bool = False
    mono: bool = False
    halo: str = ""  # the colour of an outline, for text on cells
    turned: bool = False  # upwards, by 50 degrees
    selects: tuple[Literal["token", "head"], int] | None = None


Item = Cells | Box | Line | Text


@dataclass(frozen=True, slots=True)
class Scene:
    """The moving picture of one step, `height` pixels high; later items lie above earlier ones.

    `shown` names the steps whose result is in the last frame. `sentence` says in words what the
    last frame shows. `still` is the step whose last frame stands for this one where nothing may
    move; by default this step.
    """

    step: str
    question: str
    height: float
    items: tuple[Item, ...]
    sentence: str
    shown: tuple[str, ...] = ()
    still: str = ""
