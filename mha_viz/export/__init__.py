"""Data and pages as files: figures as CSV, JSON, npz and HTML, tables as CSV."""

from mha_viz.export.figure_data import figure_table
from mha_viz.export.html_page import page, versions
from mha_viz.export.picture import Picture
from mha_viz.export.tables import Table, head_table, matrix_csv, safe, table_csv

__all__ = [
    "Picture",
    "Table",
    "figure_table",
    "head_table",
    "matrix_csv",
    "page",
    "safe",
    "table_csv",
    "versions",
]
