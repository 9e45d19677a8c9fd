"""Tables as CSV, safe for spreadsheets."""

import csv
import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mha_viz.export.origin import Origin, comments

FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet runs text that starts with one of these
Table = tuple[list[str], list[list[Any]]]  # header, rows


def safe(text: str) -> str:
    """The text, escaped so that a spreadsheet shows it and does not run it."""
    return f"'{text}" if text.startswith(FORMULA) else text


def table_csv(
    header: Sequence[str], rows: Sequence[Sequence[object]], facts: Origin | None = None
) -> str:
    """A table as CSV after a comment line for each fact; `pandas.read_csv(comment="#")` reads it.

    Cells are escaped, so that spreadsheets do not run them as formulas.
    """
    buffer = io.StringIO()
    buffer.writelines(f"{line}\r\n" for line in comments(facts or {}))
    writer = csv.writer(buffer, quoting=csv.QUOTE_NONNUMERIC)  # a "#" in quotes is no comment
    for row in (header, *rows):
        writer.writerow([safe(cell) if isinstance(cell, str) else cell for cell in row])
    return buffer.getvalue()


def matrix_csv(
    matrix: NDArray[np.float32], tokens: Sequence[str] = (), facts: Origin | None = None
) -> str:
    """A matrix `[n, m]` as CSV; each row starts with its number and its token, if any."""
    header = ["row", "token", *map(str, range(matrix.shape[1]))]
    labels = tokens or [""] * len(matrix)
    rows = [[i, labels[i], *map(float, row)] for i, row in enumerate(matrix)]
    return table_csv(header, rows, facts)


def head_table(names: Sequence[str], *values: NDArray[Any]) -> Table:
    """One row per head, with its number in each of `values` `[L, H]`; drops heads with NaN."""
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
