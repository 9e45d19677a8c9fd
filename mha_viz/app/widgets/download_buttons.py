"""Buttons that download the data of a figure as a CSV file."""

from collections.abc import Callable, Sequence

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from mha_viz.export import matrix_csv, table_csv

ICON = ":material/download:"
LABEL = "Download CSV"


def download_csv(label: str, name: str, make: Callable[[], str]) -> None:
    """A button that downloads a CSV file under that name; `make` runs after a click."""
    st.download_button(
        label, make, name, "text/csv", key=f"csv_{name}", on_click="ignore", icon=ICON
    )


def download_matrix(name: str, matrix: NDArray[np.float32], *, rows: Sequence[str] = ()) -> None:
    """A button that downloads a matrix, with a token before each of its rows."""
    download_csv(LABEL, name, lambda: matrix_csv(matrix, rows))


def download_table(
    name: str, header: Sequence[str], rows: Sequence[Sequence[object]], *, label: str = LABEL
) -> None:
    """A button that downloads a table."""
    download_csv(label, name, lambda: table_csv(header, rows))
