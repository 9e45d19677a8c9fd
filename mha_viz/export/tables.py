"""Tables as CSV, safe for spreadsheets."""

import csv
import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

FORMULA = ("=", "+", "-", "@", "\t", "\r")  # starts of text that a spreadsheet would run
Table = tuple[list[str], list[list[Any]]]  # header, rows


def safe(text: str) -> str:
    """The text, escaped so that a spreadsheet shows it and does not run it."""
    return f"'{text}" if text.startswith(FORMULA) else text


def table_csv(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table as CSV; text that a spreadsheet would run is quoted."""
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    for row in (header, *rows):
        writer.writerow([safe(cell) if isinstance(cell, str) else cell for cell in row])
    return buffer.getvalue()


def matrix_csv(matrix: NDArray[np.float32], tokens: Sequence[str] = ()) -> str:
    """A matrix `[n, m]` as CSV; each row starts with its number and its token, if there is one."""
    header = ["row", "token", *map(str, range(matrix.shape[1]))]
    labels = tokens or [""] * len(matrix)
    rows = [[i, labels[i], *map(float, row)] for i, row in enumerate(matrix)]
    return table_csv(header, rows)


def head_table(names: Sequence[str], *values: NDArray[Any]) -> Table:
    """A row for each head with the numbers of each of `values` `[L, H]`; pruned heads have none."""
    table = np.stack(values, axis=-1)
    rows = [
        [layer, head, *map(float, table[layer, head])]
        for layer, head in np.argwhere(np.isfinite(table).all(axis=-1)).tolist()
    ]
    return ["layer", "head", *names], rows


def column_array(values: Sequence[Any]) -> NDArray[Any]:
    """A column as an array: numbers, with NaN for empty cells, or else text."""
    numbers = [np.nan if value is None or value == "" else value for value in values]
    if all(isinstance(value, int | float | np.number) for value in numbers):
        return np.array(numbers)
    return np.array([str(value) for value in values])
