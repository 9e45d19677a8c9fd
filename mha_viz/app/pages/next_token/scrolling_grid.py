"""A grid of tokens that is wider than a narrow screen and scrolls sideways in a box of its own."""

from pathlib import Path

import streamlit as st

from mha_viz.app.browser import run_script
from mha_viz.app.view import View
from mha_viz.app.widgets.chart import chart
from mha_viz.export import Recipe
from mha_viz.figures.token_grid import Grid, height

_CENTRE_COLUMN = Path(__file__).parent / "centre_column.js"


def scrolling_grid(view: View, drawn: Recipe, grid: Grid, *, key: str, name: str, alt: str) -> None:
    """Draws the grid with the column of the selected token in the middle, if it is there.

    The user may scroll the box; it moves again only if another token is selected.
    """
    n = len(grid.columns)
    st.html(f"<style>:root {{ --columns: {n}; }}</style>")
    with st.container(key="tokens_box"):
        pixels = height(len(grid.rows), len(grid.notes), sizes=view.sizes)
        chart(drawn, key=key, alt=alt, name=name, height=pixels, min_width=48 * n + 120)
    middle = (view.token - grid.first + 0.5) / n
    run_script(_CENTRE_COLUMN, round(middle, 4))
