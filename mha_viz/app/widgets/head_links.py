"""Widgets that select a head on a click: a map of all heads, and buttons."""

from functools import partial
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from mha_viz.app.view import View
from mha_viz.app.widgets.chart import chart
from mha_viz.app.widgets.recipes import recipe
from mha_viz.export import Drawn, Given, heads_data
from mha_viz.figures.head_map import head_map
from mha_viz.figures.theme import TextSizes, Theme
from mha_viz.head import Head

MAX_PIXELS = 560  # of the height of a map


def selectable_head_map(
    view: View,
    values: Given,
    bounds: tuple[float, float],
    *,
    key: str,
    name: str,
    title: str,
    column: str,
    alt: str,
    **given: Any,
) -> None:
    """A chart with one value per head, `[L, H]`; a click on a cell selects that head.

    Values are called `name` in hovers and `column` in files; `given` has further arguments that the
    code of the values refers to.
    """
    given |= {"values": values, "bounds": bounds, "name": name, "column": column}
    drawn = recipe(view, _draw_heads, **given)
    chart(
        drawn,
        key=key,
        alt=alt,
        name=title,
        on_select=partial(_select_clicked, key),
        selection_mode="points",
        height=min(MAX_PIXELS, 60 + 44 * len(values.value)),
    )


def _draw_heads(
    values: NDArray[np.float64],
    bounds: tuple[float, float],
    layer: int,
    head: int,
    name: str,
    column: str,
    theme: Theme,
    sizes: TextSizes,
) -> Drawn:
    selected = (layer, head)
    figure = head_map(values, theme, bounds=bounds, selected=selected, name=name, sizes=sizes)
    data = heads_data(**{column: values})
    return figure, data


def head_button(head: Head, value: float, *, key: str) -> None:
    """A button that shows a head with its value and selects it."""
    st.button(f"{head.label} · {value:.2f}", key=key, on_click=_select, args=(head,))


def _select_clicked(key: str) -> None:
    points = st.session_state[key]["selection"]["points"]
    if points:
        layer, head, *_ = points[0]["customdata"]
        _select(Head(layer, head))


def _select(head: Head) -> None:
    st.session_state["at"] = head.key
