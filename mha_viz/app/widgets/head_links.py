"""What selects another head on a click: a map of all heads, and buttons."""

from functools import partial

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from mha_viz.app.view import View
from mha_viz.app.widgets.chart import chart
from mha_viz.export import head_table
from mha_viz.figures.head_map import head_map
from mha_viz.head import Head

MOST_PIXELS = 560  # of the height of a map


def selectable_head_map(
    view: View,
    values: NDArray[np.float64],
    bounds: tuple[float, float],
    *,
    key: str,
    name: str,
    column: str,
    alt: str,
) -> None:
    """A chart with one value per head, `[L, H]`; a click on a cell selects that head.

    Hovers call a value by its `name`, the exported table by its `column`.
    """
    figure = head_map(
        values, view.theme, bounds=bounds, selected=view.at, name=name, sizes=view.sizes
    )
    chart(
        figure,
        key=key,
        alt=alt,
        table=lambda: head_table([column], values),
        on_select=partial(_select_clicked, key),
        selection_mode="points",
        height=min(MOST_PIXELS, 60 + 44 * len(values)),
    )


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
