"""The numbers of a figure as a file."""

import csv
import io
from collections.abc import Sequence

import numpy as np
import streamlit as st
from numpy.typing import NDArray

FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet would take for a formula


def safe(text: str) -> str:
    """The text so that a spreadsheet shows it and runs nothing."""
    return f"'{text}" if text.startswith(FORMULA) else text


def table_csv(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table as CSV; text that a spreadsheet would run is shown instead."""
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    for row in (header, *rows):
        writer.writerow([safe(cell) if isinstance(cell, str) else cell for cell in row])
    return buffer.getvalue()


def matrix_csv(matrix: NDArray[np.float32], rows: Sequence[str] = ()) -> str:
    """A matrix `[n, m]` as CSV, each row after its number and, where there is one, its token."""
    names = rows or [""] * len(matrix)
    header = ["row", "token", *map(str, range(matrix.shape[1]))]
    body = [[i, names[i], *map(float, row)] for i, row in enumerate(matrix)]
    return table_csv(header, body)


def download(name: str, matrix: NDArray[np.float32], *, rows: Sequence[str] = ()) -> None:
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
