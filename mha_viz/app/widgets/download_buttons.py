"""The numbers of a figure as a file."""

from collections.abc import Sequence

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from mha_viz.export import matrix_csv, table_csv


def download_matrix(name: str, matrix: NDArray[np.float32], *, rows: Sequence[str] = ()) -> None:
    """A button that saves the matrix; the file is made when it is asked for."""
    st.download_button(
        "Numbers as CSV", lambda: matrix_csv(matrix, rows), name, "text/csv", key=f"csv_{name}",
        on_click="ignore", icon=":material/download:",
    )  # fmt: skip


def download_table(
    name: str,
    header: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    label: str = "Numbers as CSV",
) -> None:
    """A button that saves a table."""
    st.download_button(
        label, lambda: table_csv(header, rows), name, "text/csv", key=f"csv_{name}",
        on_click="ignore", icon=":material/download:",
    )  # fmt: skip
