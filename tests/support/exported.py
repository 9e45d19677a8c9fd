"""A pattern and tokens that a spreadsheet, HTML or Plotly could misread."""

import csv
import io

import numpy as np

TOKENS = ["a", "=SUM(A1)", "<b>", "a", "$x$"]


def pattern() -> np.ndarray:
    weights = np.tril(np.random.default_rng(0).random((5, 5))).astype(np.float32)
    return weights / weights.sum(axis=1, keepdims=True)


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))
