"""Figures, tables, traces and pages as files, each with its origin, and as Python scripts."""

from mha_viz.export.data import (
    Data,
    columns_data,
    heads_data,
    matrix_data,
    pattern_data,
    patterns_data,
    rows_data,
    tensor_data,
)
from mha_viz.export.html_page import page
from mha_viz.export.origin import Origin, model_facts, origin, versions
from mha_viz.export.picture import Picture
from mha_viz.export.recipe import Drawn, Given, Recipe
from mha_viz.export.tables import Table, head_table, matrix_csv, safe, table_csv
from mha_viz.export.trace_file import trace_size, write_trace

__all__ = [
    "Data",
    "Drawn",
    "Given",
    "Origin",
    "Picture",
    "Recipe",
    "Table",
    "columns_data",
    "head_table",
    "heads_data",
    "matrix_csv",
    "matrix_data",
    "model_facts",
    "origin",
    "page",
    "pattern_data",
    "patterns_data",
    "rows_data",
    "safe",
    "table_csv",
    "tensor_data",
    "trace_size",
    "versions",
    "write_trace",
]
