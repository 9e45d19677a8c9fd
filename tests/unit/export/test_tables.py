"""Tables as CSV hold their numbers, and a spreadsheet runs none of their text."""

import numpy as np
from support.exported import rows_of

from mha_viz.export import head_table, safe, table_csv


def test_a_spreadsheet_runs_nothing() -> None:
    for text in ("=1+1", "+1", "-1", "@x", "\t=1", "\r=1"):
        assert safe(text) == "'" + text
    assert safe("plain") == "plain"
    rows = rows_of(table_csv(["token", "n"], [["=cmd", -1.5]]))
    assert rows == [{"token": "'=cmd", "n": "-1.5"}]


def test_a_table_of_heads_leaves_out_pruned_heads() -> None:
    values = np.array([[0.5, np.nan], [0.25, 1.0]])
    header, rows = head_table(["one", "two"], values, 2 * values)
    assert header == ["layer", "head", "one", "two"]
    assert rows == [[0, 0, 0.5, 1.0], [1, 0, 0.25, 0.5], [1, 1, 1.0, 2.0]]
