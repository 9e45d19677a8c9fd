"""The traces and shapes that several figures are made of."""

import base64
import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from mha_viz.figures.base import Spec
from mha_viz.figures.theme import ColourScale

GAPS_UP_TO = 40  # cells per side

Values = Sequence[Any] | NDArray[Any]


def fill(colour: str | Sequence[str], opacity: float = 1.0) -> Spec:
    """The marker of bars without an edge."""
    return {"marker": {"color": colour, "opacity": opacity, "line": {"width": 0}}}


def bars(x: Values, y: Values, width: float, **more: Any) -> Spec:
    """Upright bars, `width` wide in units of x."""
    return {"type": "bar", "x": x, "y": y, "width": width} | more


def row_bars(values: Values, rows: Values, width: float, **more: Any) -> Spec:
    """Bars to the right, one for each row, `width` high in units of y."""
    return bars(values, rows, width, orientation="h") | more


def squares(x: Values, y: Values, size: float, **more: Any) -> Spec:
    """Squares around their centres: bars, since markers would not grow with the figure."""
    bottoms = np.asarray(y) - size / 2
    return bars(x, np.full(len(bottoms), size), size, base=bottoms) | more


def inside(texts: Sequence[str], font: Spec, **more: Any) -> Spec:
    """Text in the middle of bars, neither turned nor shrunk."""
    placed = {"textposition": "inside", "insidetextanchor": "middle", "textangle": 0}
    return {"text": texts, "textfont": font, "constraintext": "none"} | placed | more


def clickable(opacity: float = 1.0) -> Spec:
    """For traces that take clicks: keeps Plotly from fading the marks that are not selected."""
    same = {"marker": {"opacity": opacity}}
    return {"selected": same, "unselected": same}


def outside(texts: Sequence[str], font: Spec) -> Spec:
    """Text at the ends of bars, never shrunk or clipped."""
    placed = {"textposition": "outside", "cliponaxis": False, "constraintext": "none"}
    return {"text": texts, "textfont": font} | placed


def line(x: Values, y: Values, colour: str, width: float, **more: Any) -> Spec:
    """A line through points; NaN or None interrupts it. By default it has no hover."""
    drawn = {"type": "scatter", "mode": "lines", "line": {"color": colour, "width": width}}
    return drawn | {"x": x, "y": y, "hoverinfo": "skip"} | more


def heatmap(
    z: NDArray[Any],
    low: float,
    high: float,
    colours: ColourScale,
    *,
    origin: tuple[float, float] = (0, 0),
    block: int = 1,
    **more: Any,
) -> Spec:
    """Cells coloured from `low` to `high`; NaN is blank and has no hover.

    A cell stands for `block` positions per side; `origin` is the first (column, row).
    """
    scale = {"zmin": low, "zmax": high, "colorscale": colours, "hoverongaps": False}
    x0, y0 = (first + (block - 1) / 2 for first in origin)
    places = {"x0": x0, "dx": block, "y0": y0, "dy": block}
    return {"type": "heatmap", "z": z} | scale | places | more


def gaps(z: NDArray[Any]) -> Spec:
    """A pixel of page between the cells of a heatmap, where they are large enough."""
    width = 1 if max(z.shape) <= GAPS_UP_TO else 0
    return {"xgap": width, "ygap": width}


def stroke(colour: str, width: float, dash: str = "solid") -> Spec:
    """The line of a shape."""
    return {"line": {"color": colour, "width": width, "dash": dash}}


def rectangle(x0: float, x1: float, y0: float, y1: float, **more: Any) -> Spec:
    """A rectangle in units of the axes."""
    return {"type": "rect", "x0": x0, "x1": x1, "y0": y0, "y1": y1} | more


def frame(x: float, y: float, colour: str, half: float = 0.5) -> Spec:
    """The outline of a selected cell around (x, y)."""
    return rectangle(x - half, x + half, y - half, y + half, **stroke(colour, 3))


def horizontal_line(y: float, **more: Any) -> Spec:
    """A horizontal line across the plot."""
    return {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": y, "y1": y} | more


def vertical_line(x: float, **more: Any) -> Spec:
    """A vertical line across the plot."""
    return {"type": "line", "yref": "paper", "x0": x, "x1": x, "y0": 0, "y1": 1} | more


def png_uri(image: Image.Image, **options: Any) -> str:
    """The image as a data URI, saved as PNG with Pillow's `options`."""
    buffer = io.BytesIO()
    # Higher levels save little on flat colours and take longer.
    image.save(buffer, "PNG", compress_level=1, **options)
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode('ascii')}"
