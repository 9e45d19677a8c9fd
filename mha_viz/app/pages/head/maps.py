"""Maps of all queries and keys that the tabs of the Head page share."""

from collections.abc import Callable
from typing import Any

import numpy as np

from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.chart import cached_figure, square
from mha_viz.app.widgets.download_buttons import download_csv
from mha_viz.app.widgets.recipes import recipe
from mha_viz.app.widgets.zoom import reset_zoom_button
from mha_viz.app.work import models
from mha_viz.export import Drawn, Given, matrix_csv, pattern_data
from mha_viz.figures.cells import Colours, cell_map
from mha_viz.figures.theme import TextSizes, Theme
from mha_viz.figures.window import Window, whole
from mha_viz.trace import Array, Trace

HALF_PAGE_TICKS = 30  # labels per axis of a map that is half as wide as the page


def masked(values: Array) -> Array:
    """The values `[T, T]` with NaN where the key comes after the query."""
    out: Array = np.where(np.tri(len(values), dtype=np.bool_), values, np.float32(np.nan))
    return out


def masked_pattern(view: View) -> Array:
    """`[T, T]`: the pattern of the selected head, NaN where the key comes after the query."""
    return masked(models.pattern(view.trace_key, view.layer, view.head, view.trace))


def square_map(
    view: View,
    values: Given,
    *,
    key: str,
    name: str,
    alt: str,
    array: str = "pattern",
    value: str = "weight",
    colours: Colours = "root",
    top: float | Given = 1.0,
    ticks: int = HALF_PAGE_TICKS,
) -> None:
    """Draws values `[T, T]` of the selected head, zoomed as on the Attention page.

    In files, `array` names the values, and `value` each of them. The figure is cached under its
    `name`, which stands for values, colours and top.
    """
    given: dict[str, Any] = {"values": values, "top": top, "array": array, "value": value}
    drawn = recipe(view, _draw_map, **given, colours=colours, ticks=ticks)
    what = (name, ticks, view.trace_key, view.at.key, view.window, view.stage, view.theme.name)
    square(drawn, key=key, alt=alt, name=name, figure=cached_figure(what, drawn))


def _draw_map(
    trace: Trace,
    values: Array,
    layer: int,
    head: int,
    array: str,
    value: str,
    colours: Colours,
    top: float,
    window: Window | None,
    ticks: int,
    theme: Theme,
    sizes: TextSizes,
) -> Drawn:
    figure = cell_map(
        values,
        trace.tokens,
        theme,
        colours=colours,
        top=top,
        window=window,
        ticks=ticks,
        sizes=sizes,
    )
    facts: dict[str, Any] = {"token_ids": trace.token_ids, "layer": layer, "head": head}
    data = pattern_data(values, trace.tokens, name=array, value=value, **facts)
    return figure, data


def explain_maps(view: View) -> None:
    """Says which area the maps show and what a cell stands for, if it is not one pair of tokens."""
    window, n_tokens = view.window, view.trace.n_tokens
    block = (window or whole(n_tokens)).block
    reset_zoom_button(view)
    if window is not None:
        explained.note(
            f"Showing queries {window.first_query} to {window.end_query - 1} and keys "
            f"{window.first_key} to {window.end_key - 1}, as zoomed on the Attention page."
        )
    if block > 1:
        explained.note(
            f"{n_tokens:,} tokens: each cell shows the largest value (for scores, the largest "
            f"magnitude) in a {block} × {block} block. Click a cell to select that pair, or zoom "
            "in on the Attention page."
        )


def download_map(view: View, label: str, name: str, values: Callable[[], Array]) -> None:
    """A button that downloads the values of a map as NAME.csv, one row per query."""
    file = f"{view.at.key}_{name}.csv"
    download_csv(label, file, lambda origin: matrix_csv(values(), view.trace.tokens, origin))
