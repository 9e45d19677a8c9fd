"""One number per head, shown by colour: layers down, heads across."""

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from mha_viz.figures.base import CLEAR, Spec, Style, hover
from mha_viz.figures.grid import head_axes
from mha_viz.figures.marks import clickable, frame, inside, squares
from mha_viz.figures.text import escape, with_minus
from mha_viz.figures.theme import NORMAL, TextSizes, Theme, diverging_colour, sequential_colour

NUMBERS_UP_TO = 14  # heads per layer; with more, the numbers do not fit into the cells


def head_map(
    values: NDArray[np.float64],
    theme: Theme,
    *,
    bounds: tuple[float, float],
    selected: tuple[int, int],
    name: str,
    diverging: bool = False,
    sizes: TextSizes = NORMAL,
) -> go.Figure:
    """A cell for each of `values` `[L, H]`, coloured from the lower to the upper of `bounds`.

    With `diverging`, the middle of the bounds has no colour. NaN is blank. The customdata of a cell
    is [layer, head, number as text]; `name` is what the number is called on hover.
    """
    style, (L, H) = Style(theme, sizes), values.shape
    layers, heads = (axis.ravel() for axis in np.indices((L, H)))
    low, high = bounds
    share = (np.nan_to_num(values.ravel(), nan=low) - low) / ((high - low) or 1.0)
    strength = np.clip(share, 0, 1) * 2 - 1 if diverging else np.clip(share, 0, 1)
    colour = diverging_colour if diverging else sequential_colour
    colours = [
        colour(theme, s) if np.isfinite(v) else CLEAR
        for s, v in zip(strength.tolist(), values.flat, strict=True)
    ]
    texts = [_number(value, 4) or "no value" for value in values.flat]
    data = [[*place, text] for place, text in zip(np.ndindex(L, H), texts, strict=True)]
    cells = squares(heads, layers, 1, customdata=data) | clickable()
    cells["marker"] = {"color": colours, "line": {"width": 2, "color": theme.page}}
    cells |= hover(f"L%{{customdata[0]}} H%{{customdata[1]}}, {escape(name)}: %{{customdata[2]}}")
    if H <= NUMBERS_UP_TO:
        cells |= _numbers(values, np.abs(strength) > theme.ink_flips_at, style)
    return style.figure(
        cells,
        margin={"l": 34, "r": 4, "t": 26, "b": 4},
        clickmode="event+select",
        shapes=[frame(selected[1], selected[0], theme.query)],
        **head_axes(L, H, style),
    )


def _numbers(values: NDArray[np.float64], strong: NDArray[np.bool_], style: Style) -> Spec:
    """The numbers in the cells, in a colour that is readable on them."""
    texts = [_number(value, 2 if abs(value) < 10 else 0) for value in values.flat]
    inks = np.where(strong, style.theme.ink_on_strong, style.theme.ink).tolist()
    return inside(texts, {"size": style.sizes.cell - 1, "color": inks})


def _number(value: float, digits: int) -> str:
    if not np.isfinite(value):
        return ""
    return with_minus(f"{round(value, digits) + 0.0:.{digits}f}")  # + 0.0 turns -0.0 into 0.0
