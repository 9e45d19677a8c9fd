"""A frame of a scene as pixels, and as a Plotly figure that can be exported and printed."""

from collections.abc import Mapping

import numpy as np
import plotly.graph_objects as go
from PIL import Image as Picture

from mha_viz.figures.base import HIDDEN, Spec, Style
from mha_viz.figures.journey.cells import Image, Pixels
from mha_viz.figures.journey.parts import LAST
from mha_viz.figures.journey.scene import Box, Cells, Line, Rect, Scene, Text
from mha_viz.figures.marks import png_uri, rectangle, stroke
from mha_viz.figures.text import escape
from mha_viz.figures.theme import MONO, NORMAL, SANS, TextSizes, Theme

SCALE = 2  # pixels of the image for a pixel of the scene
ANCHORS = {"start": "left", "middle": "center", "end": "right"}


def still(
    scene: Scene,
    images: Mapping[str, Image],
    width: float,
    theme: Theme,
    *,
    frame: float = LAST,
    sizes: TextSizes = NORMAL,
) -> go.Figure:
    """The frame of a scene that is `width` pixels wide, by default the last one."""
    drawn = painted(scene, images, width, frame)
    image = {"source": png_uri(Picture.fromarray(drawn)), "xref": "x", "yref": "y"}
    place = {"x": 0, "y": 0, "sizex": width, "sizey": scene.height}
    axis = HIDDEN | {"constrain": "domain"}
    seen = [item for item in scene.items if item.motion.at(frame)[1] > 0]
    shapes = [part for item in seen if isinstance(item, Box) for part in _box(item, frame)]
    shapes += [part for item in seen if isinstance(item, Line) for part in _line(item, frame)]
    texts = [_text(item, frame) for item in seen if isinstance(item, Text)]
    # Plotly draws images only if there is a trace.
    return Style(theme, sizes).figure(
        {"type": "scatter", "x": [], "y": []},
        margin={"l": 4, "r": 4, "t": 4, "b": 4},
        images=[image | place | {"sizing": "stretch", "layer": "below"}],
        shapes=shapes,
        annotations=texts,
        xaxis=axis | {"range": [0, width], "constraintoward": "left"},
        yaxis=axis | {"range": [scene.height, 0], "scaleanchor": "x", "constraintoward": "top"},
    )


def painted(scene: Scene, images: Mapping[str, Image], width: float, frame: float = LAST) -> Pixels:
    """The cells of a frame, `[2 height, 2 width, 4]`, as the browser paints them."""
    canvas = np.zeros((round(scene.height * SCALE), round(width * SCALE), 4), np.uint8)
    for item in scene.items:
        if isinstance(item, Cells):
            _paint(canvas, item, images[item.image].pixels, frame)
    return canvas


def _paint(canvas: Pixels, item: Cells, pixels: Pixels, frame: float) -> None:
    rect, opacity = item.motion.at(frame)
    column, row, columns, rows = item.crop
    cropped = pixels[row : row + rows, column : column + columns]
    before, after = item.gap
    share = item.motion.share(frame)
    gap = before + (after - before) * share
    pitch = (rect.height + gap) / rows
    xs = _samples(rect.x, rect.width, columns, canvas.shape[1])
    for r in range(rows):
        ys = _samples(rect.y + r * pitch, pitch - gap, 1, canvas.shape[0])
        if not (len(xs[0]) and len(ys[0])):
            continue
        line = cropped[r, xs[1]].astype(float)
        line[:, 3] *= opacity
        under = canvas[ys[0][0] : ys[0][-1] + 1, xs[0][0] : xs[0][-1] + 1]
        under[:] = np.where(line[:, 3:] > 0, np.rint(line).astype(np.uint8), under)


def _samples(
    start: float, size: float, n: int, limit: int
) -> tuple[np.ndarray[tuple[int], np.dtype[np.intp]], np.ndarray[tuple[int], np.dtype[np.intp]]]:
    """The pixels of the canvas between start and end, and which of `n` cells each shows."""
    first, last = max(round(start * SCALE), 0), min(round((start + size) * SCALE), limit)
    places = np.arange(first, max(first, last))
    cells = np.floor((places + 0.5 - start * SCALE) / max(size * SCALE, 1e-9) * n)
    return places, np.clip(cells, 0, n - 1).astype(np.intp)


def _box(item: Box, frame: float) -> list[Spec]:
    rect, opacity = item.motion.at(frame)
    corners = rect.x, rect.right, rect.y, rect.bottom
    parts = []
    if item.halo:
        parts.append(rectangle(*corners, **stroke(item.halo, item.thickness + 2)))
    look: Spec = stroke(item.line, item.thickness) if item.line else {"line": {"width": 0}}
    look |= {"opacity": opacity} | ({"fillcolor": item.fill} if item.fill else {})
    return [*parts, rectangle(*corners, **look)]


def _line(item: Line, frame: float) -> list[Spec]:
    rect, opacity = item.motion.at(frame)
    (x, y), (middle, centre) = (rect.x, rect.y), rect.centre
    low = centre + item.bend
    path = f"M{x},{y} Q{middle},{2 * low - (y + rect.bottom) / 2} {rect.right},{rect.bottom}"
    look = stroke(item.colour, item.thickness, "dash" if item.dashed else "solid")
    parts: list[Spec] = [{"type": "path", "path": path, "opacity": opacity} | look]
    if item.arrow:
        parts.append({"type": "path", "path": _head(rect, low), "fillcolor": item.colour} | look)
    return parts


def _head(rect: Rect, low: float) -> str:
    """The head of an arrow: a triangle at its end, in the direction in which it arrives."""
    control = rect.centre[0], 2 * low - (rect.y + rect.bottom) / 2
    along = np.array([rect.right - control[0], rect.bottom - control[1]])
    along = along / (np.hypot(*along) or 1.0)
    across = np.array([-along[1], along[0]])
    tip = np.array([rect.right, rect.bottom])
    corners = [tip, tip - 8 * along + 4 * across, tip - 8 * along - 4 * across]
    return "M" + " L".join(f"{x:.2f},{y:.2f}" for x, y in corners) + " Z"


def _text(item: Text, frame: float) -> Spec:
    rect, opacity = item.motion.at(frame)
    text = escape(item.text)
    font = {"size": item.size, "color": item.colour, "family": MONO if item.mono else SANS}
    return {
        "text": f"<b>{text}</b>" if item.bold else text,
        "x": rect.x,
        "y": rect.y,
        "xanchor": ANCHORS[item.anchor],
        "yanchor": "bottom" if item.turned else "middle",
        "showarrow": False,
        "opacity": opacity,
        "textangle": -50 if item.turned else 0,
        "font": font,
    }
