"""All heads of all layers in one picture: layers down, heads across, a thumbnail each."""

import zlib

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from PIL import Image

from mha_viz.figures.base import CLEAR, Spec, Style, hover
from mha_viz.figures.marks import fill, png_uri, squares
from mha_viz.figures.scale import Scale, future, place
from mha_viz.figures.theme import NORMAL, TextSizes, Theme, colorscale, rgb
from mha_viz.trace import Array

LEVELS = 127  # colours of a pixel, and as many dimmed ones for the first key
BLANK = 255
GAP = 0.08  # between two thumbnails, as a share of a side
NAME_ROOM = 0.24  # below a thumbnail, for the name of its head, as a share of a side
MOST_NAMED = 8  # heads per layer whose thumbnails are wide enough for a name
DIMMED = 0.25  # opacity of the first key when its sink is dimmed


def head_grid(
    thumbnails: Array,
    theme: Theme,
    *,
    scale: Scale = "sqrt",
    dim_sink: bool = False,
    sizes: TextSizes = NORMAL,
) -> go.Figure:
    """The thumbnails `[L, H, s, s]` as one image under invisible cells with a hover.

    Each cell has `name_room(H)` of blank space below its thumbnail.

    They are those of `Trace.thumbnails`; for the scale "share", the ones with `relative`. The
    customdata of a cell is [layer, head].
    """
    L, H = thumbnails.shape[:2]
    layers, heads = (axis.ravel() for axis in np.indices((L, H)))
    cells = squares(heads, layers, 1, customdata=np.stack([layers, heads], axis=1).tolist())
    below = name_room(H)
    uri = mosaic_uri(thumbnails, theme, scale=scale, dim_sink=dim_sink, below=below)
    image = {"source": uri, "xref": "x", "yref": "y", "x": -0.5, "y": -0.5, "sizex": H, "sizey": L}
    style = Style(theme, sizes)
    axes = head_axes(L, H, style)
    axes["yaxis"] |= {"scaleanchor": "x", "scaleratio": 1 + below}  # square thumbnails
    return style.figure(
        cells | fill(CLEAR) | hover("L%{customdata[0]} H%{customdata[1]}"),
        margin={"l": 28, "r": 4, "t": 26, "b": 4},
        images=[image | {"sizing": "stretch", "layer": "below"}],
        **axes,
    )


def head_axes(L: int, H: int, style: Style) -> Spec:
    """Layers down and heads across; if there are many, only every second or fourth has a label."""
    layers, heads = _labelled(L), _labelled(H)
    across = {"side": "top", "range": [-0.5, H - 0.5], "constraintoward": "left"}
    down = {"range": [L - 0.5, -0.5], "constraintoward": "top"}
    axis = style.axis(constrain="domain", ticklabeloverflow="allow")
    head_ticks = {"tickvals": heads, "ticktext": ["H0", *map(str, heads[1:])]}
    layer_ticks = {"tickvals": layers, "ticktext": ["L0", *map(str, layers[1:])]}
    return {"xaxis": axis | across | head_ticks, "yaxis": axis | down | layer_ticks}


def mosaic_uri(
    thumbnails: Array,
    theme: Theme,
    *,
    scale: Scale = "sqrt",
    dim_sink: bool = False,
    below: float = 0.0,
) -> str:
    """The image under the grid as a data URI: L x H cells of equal size.

    `below` is blank space at the foot of each cell, as a share of its width.
    """
    mosaic = _mosaic(_levels(thumbnails, scale, dim_sink), below)
    image = Image.fromarray(mosaic, mode=None)
    image.putpalette(_palette(theme).tobytes())
    # Z_RLE looks for runs only, which is faster, and patterns are mostly runs.
    return png_uri(image, compress_type=zlib.Z_RLE, transparency=BLANK)


def thumbnail_size(n_heads: int) -> int:
    """Pixels per side, so that a row of heads fills about 560 pixels and none is dropped."""
    return max(16, min(80, int(560 / n_heads / (1 + GAP))))


def name_room(n_heads: int) -> float:
    """The blank space below each thumbnail as a share of its cell's width; 0 in a wide grid."""
    return NAME_ROOM if n_heads <= MOST_NAMED else 0.0


def grid_ratio(n_layers: int, n_heads: int) -> float:
    """Width over height of the grid with its labels."""
    return n_heads / (n_layers * (1 + name_room(n_heads)) + 0.4)


def _labelled(n: int) -> list[int]:
    return list(range(0, n, 1 if n <= 16 else 2 if n <= 32 else 4))


def _levels(thumbnails: Array, scale: Scale, dim_sink: bool) -> NDArray[np.uint8]:
    """The palette index of each pixel; pruned heads, which are NaN, are blank."""
    side = thumbnails.shape[-1]
    places = place(np.nan_to_num(thumbnails), scale)
    levels = np.rint(places * (LEVELS - 1)).astype(np.uint8)
    if dim_sink:
        levels[..., 0] += LEVELS
    levels[np.isnan(thumbnails) | future(side, side)] = BLANK
    return levels


def _mosaic(levels: NDArray[np.uint8], below: float) -> NDArray[np.uint8]:
    """`[L, H, s, s]` -> one image, each thumbnail in a cell with a blank border and space below."""
    L, H, side, _ = levels.shape
    scale = max(1, round(32 / side))  # tiny thumbnails grow, so that a gap is whole pixels
    large = levels.repeat(scale, axis=2).repeat(scale, axis=3)
    side *= scale
    border = max(1, round(side * GAP / 2))
    cell = side + 2 * border
    height = cell + round(cell * below)
    mosaic = np.full((L, height, H, cell), BLANK, dtype=np.uint8)
    inside = slice(border, border + side)
    mosaic[:, inside, :, inside] = large.transpose(0, 2, 1, 3)
    return mosaic.reshape(L * height, H * cell)


def _palette(theme: Theme) -> NDArray[np.uint8]:
    places, names = zip(*colorscale(theme), strict=True)
    channels = np.array([rgb(name) for name in names], dtype=np.float32).T
    levels = np.linspace(0, 1, LEVELS)
    ramp = np.stack([np.interp(levels, places, channel) for channel in channels], axis=1)
    dimmed = ramp * DIMMED + np.array(rgb(theme.page)) * (1 - DIMMED)
    palette = np.zeros((256, 3), dtype=np.uint8)
    palette[: 2 * LEVELS] = np.rint(np.concatenate([ramp, dimmed]).astype(np.float32))
    return palette
