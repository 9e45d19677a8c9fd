"""Buttons that download the data of a figure as a CSV file."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from mha_viz.app.widgets.origins import origin_of_page
from mha_viz.export import Origin, matrix_csv, table_csv

ICON = ":material/download:"
LABEL = "Download CSV"


def download_csv(label: str, name: str, make: Callable[[Origin], str]) -> None:
    """A button that downloads a CSV file under that name; `make` runs after a click.

    It gets the origin of what is on the page so far.
    """
    made = partial(make, origin_of_page())
    st.download_button(
        label, made, name, "text/csv", key=f"csv_{name}", on_click="ignore", icon=ICON
    )


def download_matrix(name: str, matrix: NDArray[np.float32], *, rows: Sequence[str] = ()) -> None:
    """A button that downloads a matrix, with a token before each of its rows."""
    download_csv(LABEL, name, lambda origin: matrix_csv(matrix, rows, origin))


def download_table(
    name: str, header: Sequence[str], rows: Sequence[Sequence[object]], *, label: str = LABEL
) -> None:
    """A button that downloads a table."""
    download_csv(label, name, lambda origin: table_csv(header, rows, origin))
