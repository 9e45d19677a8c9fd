"""The data of a figure are the numbers that it draws, with their labels."""

import io
import json

import numpy as np
import pytest
from support.exported import TOKENS, pattern, rows_of

from mha_viz.export import safe
from mha_viz.export.data import columns_data, heads_data, matrix_data, pattern_data, patterns_data


def test_the_csv_of_a_pattern_holds_each_weight_with_its_tokens() -> None:
    weights = pattern()
    rows = rows_of(pattern_data(weights, TOKENS).csv())
    assert len(rows) == 15
    for row in rows:
        query, key = int(row["query"]), int(row["key"])
        assert float(row["weight"]) == pytest.approx(weights[query, key], abs=1e-7)
        # A spreadsheet must run nothing.
        assert row["key token"] == safe(TOKENS[key])
        assert row["query token"] == safe(TOKENS[query])


def test_the_npz_of_a_pattern_is_read_back_with_tokens_facts_and_origin() -> None:
    weights = np.where(np.tri(5, dtype=bool), pattern(), np.nan)
    data = pattern_data(weights, TOKENS, layer=3, head=1)
    with np.load(io.BytesIO(data.npz({"model": "a test"}))) as file:
        np.testing.assert_array_equal(file["pattern"], np.nan_to_num(weights))
        assert file["tokens"].tolist() == list(TOKENS)
        assert (file["layer"], file["head"]) == (3, 1)
        assert json.loads(str(file["provenance"])) == {"model": "a test"}


def test_keys_after_the_query_have_rows_where_they_have_weight() -> None:
    full = np.full((2, 3), 0.25, dtype=np.float32)
    assert len(rows_of(pattern_data(full, ["a", "b"], keys=["x", "y", "z"]).csv())) == 6
    assert len(rows_of(pattern_data(full[:, :2], ["a", "b"]).csv())) == 4


def test_a_pooled_cell_names_the_first_tokens_of_its_block() -> None:
    patterns = np.tri(2, dtype=np.float32)[None, None] * [[[[0.5]]], [[[np.nan]]]]
    header, rows = patterns_data(patterns, ["a", "b", "c", "d"], block=2).table()
    assert header[-1] == "largest weight"
    assert rows == [
        [0, 0, 0, "a", 0, "a", 0.5],
        [0, 0, 2, "c", 0, "a", 0.5],
        [0, 0, 2, "c", 2, "c", 0.5],
    ]  # the second layer's head is pruned


def test_columns_and_heads_have_rows() -> None:
    rows = rows_of(columns_data(weight=np.array([0.5, 0.25]), next_token=["x", "y"]).csv())
    assert [(float(row["weight"]), row["next token"]) for row in rows] == [(0.5, "x"), (0.25, "y")]
    assert len(rows_of(heads_data(induction=np.array([[0.5, np.nan]])).csv())) == 1


def test_a_blank_cell_of_a_matrix_has_no_row() -> None:
    values = np.array([[1.0, np.nan]])
    header, rows = matrix_data(values, ("layer", []), ("token", ["a", "b"]), value="p").table()
    assert header == ["layer", "token", "token token", "p"]
    assert rows == [[0, 0, "a", 1.0]]
