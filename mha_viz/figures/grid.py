"""All heads of all layers in one picture: layers down, heads across, a thumbnail each."""

import base64
import io
import zlib

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from PIL import Image

from mha_viz.figures.scale import Scale, hidden, position
from mha_viz.figures.theme import NORMAL, SANS, Theme, Type, colorscale, rgb
from mha_viz.trace import Array

LEVELS = 127  # colours a pixel may take; the same again, dimmed, for the first key
CLEAR = 255
GAP = 0.08  # of a thumbnail's side, between two of them
DIMMED = 0.25  # opacity of the first key when its sink is dimmed


def head_grid(
    thumbnails: Array,
    theme: Theme,
    *,
    scale: Scale = "sqrt",
    block: int = 1,
    dim_sink: bool = False,
    sizes: Type = NORMAL,
) -> go.Figure:
    """The pooled patterns `[L, H, s, s]` as one image under invisible, hoverable cells.

    `block` tokens a side were pooled into one pixel. The customdata of a cell is [layer, head].
    """
    L, H = thumbnails.shape[:2]
    uri = mosaic_uri(thumbnails, theme, scale=scale, block=block, dim_sink=dim_sink)
    figure = go.Figure(_cells(L, H))
    figure.add_layout_image(
        source=uri, xref="x", yref="y", x=-0.5, y=-0.5, sizex=H, sizey=L,
        sizing="stretch", layer="below",
    )  # fmt: skip
    axis = {
        "showgrid": False, "zeroline": False, "showline": False, "ticks": "", "fixedrange": True,
        "constrain": "domain", "ticklabeloverflow": "allow",
        "tickfont": {"size": sizes.tick, "color": theme.muted},
    }  # fmt: skip
    step_h, step_l = _step(H), _step(L)
    heads, layers = list(range(0, H, step_h)), list(range(0, L, step_l))
    figure.update_xaxes(
        axis, side="top", range=[-0.5, H - 0.5], constraintoward="left", tickvals=heads,
        ticktext=[f"H{h}" if h == 0 else str(h) for h in heads],
    )  # fmt: skip
    figure.update_yaxes(
        axis, range=[L - 0.5, -0.5], scaleanchor="x", constraintoward="top", tickvals=layers,
        ticktext=[f"L{i}" if i == 0 else str(i) for i in layers],
    )  # fmt: skip
    figure.update_layout(
        template="none", barmode="overlay", bargap=0, dragmode=False, hovermode="closest",
        showlegend=False, paper_bgcolor="rgba(0,0,0,0)", plot_bgcolor="rgba(0,0,0,0)",
        margin={"l": 28, "r": 4, "t": 26, "b": 4}, font={"family": SANS, "color": theme.ink},
        hoverlabel={"bgcolor": theme.surface, "bordercolor": theme.query,
                    "font": {"family": SANS, "size": sizes.tick + 1, "color": theme.ink}},
    )  # fmt: skip
    return figure


def mosaic_uri(
    thumbnails: Array,
    theme: Theme,
    *,
    scale: Scale = "sqrt",
    block: int = 1,
    dim_sink: bool = False,
) -> str:
    """The image under the grid as a data address: L x H cells of equal size."""
    mosaic = _mosaic(_levels(thumbnails, scale, block, dim_sink))
    return f"data:image/png;base64,{base64.b64encode(_png(mosaic, theme)).decode('ascii')}"


def thumbnail_size(n_heads: int) -> int:
    """Pixels a side, so that a row of heads fills about 560 pixels and no pixel is dropped."""
    return max(16, min(80, int(560 / n_heads / (1 + GAP))))


def _cells(L: int, H: int) -> list[go.Bar]:
    """Bars in data units, which grow and shrink with the picture as markers would not."""
    layers, heads = (axis.ravel() for axis in np.indices((L, H)))
    return [
        go.Bar(
            x=heads, y=np.ones(L * H), base=layers - 0.5, width=1,
            marker={"color": "rgba(0,0,0,0)", "line": {"width": 0}},
            customdata=np.stack([layers, heads], axis=1).tolist(),
            hovertemplate="L%{customdata[0]} H%{customdata[1]}<extra></extra>",
        )
    ]  # fmt: skip


def _levels(thumbnails: Array, scale: Scale, block: int, dim_sink: bool) -> NDArray[np.uint8]:
    side = thumbnails.shape[-1]
    gone = np.isnan(thumbnails)  # heads that were taken out
    places = position(np.nan_to_num(thumbnails), scale, block=block)
    levels = np.rint(places * (LEVELS - 1)).astype(np.uint8)
    if dim_sink:
        levels[..., 0] += LEVELS
    levels[..., hidden(side, side)] = CLEAR
    levels[gone] = CLEAR
    return levels


def _mosaic(levels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """`[L, H, s, s]` -> one image, each thumbnail in the middle of a cell with a clear border."""
    L, H, side, _ = levels.shape
    scale = max(1, round(32 / side))  # whole pixels for a gap, when the thumbnails are tiny
    big = levels.repeat(scale, axis=2).repeat(scale, axis=3)
    side *= scale
    before = max(1, round(side * GAP / 2))
    cell = side + 2 * before
    out = np.full((L, cell, H, cell), CLEAR, dtype=np.uint8)
    out[:, before : before + side, :, before : before + side] = big.transpose(0, 2, 1, 3)
    return out.reshape(L * cell, H * cell)


def _png(mosaic: NDArray[np.uint8], theme: Theme) -> bytes:
    colours = np.array(_ramp(theme), dtype=np.float32)
    dimmed = colours * DIMMED + np.array(rgb(theme.page), dtype=np.float32) * (1 - DIMMED)
    palette = np.zeros((256, 3), dtype=np.uint8)
    palette[: 2 * LEVELS] = np.rint(np.concatenate([colours, dimmed]))
    image = Image.fromarray(mosaic, mode=None)
    image.putpalette(palette.tobytes())
    buffer = io.BytesIO()
    # Runs alone are faster to find than repeats, and patterns are mostly runs.
    image.save(buffer, "PNG", compress_level=1, compress_type=zlib.Z_RLE, transparency=CLEAR)
    return buffer.getvalue()


def _ramp(theme: Theme) -> list[tuple[float, float, float]]:
    stops = colorscale(theme)
    at = np.linspace(0, 1, LEVELS)
    channels = np.array([rgb(colour) for _, colour in stops], dtype=np.float32)
    xs = [x for x, _ in stops]
    mixed = [np.interp(at, xs, channels[:, c]) for c in range(3)]
    return list(zip(*mixed, strict=True))


def _step(n: int) -> int:
    return 1 if n <= 16 else 2 if n <= 32 else 4
