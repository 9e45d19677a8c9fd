"""Numbers and pages to take away: what was drawn is what is in the file, labels and all."""

import csv
import io
import json
import re

import numpy as np
import plotly.graph_objects as go
import pytest

from mha_viz import export
from mha_viz.figures.head_map import head_map
from mha_viz.figures.heatmap import head_heatmap
from mha_viz.figures.predictions import compare_predictions
from mha_viz.figures.theme import LIGHT

TOKENS = ["a", "=SUM(A1)", "<b>", "a", "$x$"]


def test_labels_are_what_is_read_and_not_how_it_is_drawn() -> None:
    drawn = go.Figure(
        go.Heatmap(z=[[1.0, 2.0]]),
        {"xaxis": {"tickvals": [0, 1], "ticktext": ["The<br>0", "<b>&lt;b&gt;</b>"]}},
    )
    assert [row[2] for row in export.figure_table(drawn)[1]] == ["The 0", "<b>"]


def test_numbers_of_heads_leave_out_the_head_that_is_gone() -> None:
    values = np.array([[0.5, np.nan], [0.25, 1.0]])
    header, rows = export.head_table(["one", "two"], values, 2 * values)
    assert header == ["layer", "head", "one", "two"]
    assert rows == [[0, 0, 0.5, 1.0], [1, 0, 0.25, 0.5], [1, 1, 1.0, 2.0]]


def pattern() -> np.ndarray:
    weights = np.tril(np.random.default_rng(0).random((5, 5))).astype(np.float32)
    found: np.ndarray = weights / weights.sum(axis=1, keepdims=True)
    return found


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_the_csv_of_a_heatmap_holds_each_weight_with_its_tokens():
    weights = pattern()
    rows = rows_of(export.Picture("p", head_heatmap(weights, TOKENS, LIGHT)).csv())
    assert len(rows) == 15
    for row in rows:
        query, key = int(float(row["y"])), int(float(row["x"]))
        assert float(row["value"]) == pytest.approx(weights[query, key], abs=1e-7)
        # A spreadsheet must run nothing; what was escaped for Plotly is text again.
        assert row["x label"] == export.safe(TOKENS[key])
        assert row["y label"] == export.safe(TOKENS[query])


def test_a_spreadsheet_runs_nothing():
    for text in ("=1+1", "+1", "-1", "@x", "\t=1", "\r=1"):
        assert export.safe(text) == "'" + text
    assert export.safe("plain") == "plain"
    rows = rows_of(export.table_csv(["token", "n"], [["=cmd", -1.5]]))
    assert rows == [{"token": "'=cmd", "n": "-1.5"}]


def test_the_json_is_a_figure_of_plain_lists():
    figure = head_heatmap(pattern(), TOKENS, LIGHT)
    told = json.loads(export.Picture("p", figure).json())
    z = told["data"][0]["customdata"]
    assert isinstance(z, list)
    assert z[0][1] is None
    assert z[4][4] == pytest.approx(float(pattern()[4, 4]), abs=1e-7)
    assert isinstance(go.Figure(told), go.Figure)


def test_the_npz_opens_without_pickle_and_holds_labels_and_numbers():
    figure = head_heatmap(pattern(), TOKENS, LIGHT)
    with np.load(io.BytesIO(export.Picture("p", figure).npz()), allow_pickle=False) as file:
        assert file["x_labels"].tolist() == TOKENS
        found = file["trace0_customdata"]
        np.testing.assert_allclose(np.nan_to_num(found), pattern(), atol=1e-7)


def test_every_cell_has_its_labels_however_long_the_text():
    tokens = [f"t{i}" for i in range(600)]
    weights = np.tril(np.random.default_rng(0).random((600, 600), dtype=np.float32))
    figure = head_heatmap(weights, tokens, LIGHT)
    assert len(figure.layout.xaxis.tickvals) < 50
    header, rows = export.figure_table(figure)
    assert header[5] == "value (the largest of 3 x 3)"
    assert rows[-1][2] == rows[-1][4] == "t597 (597) … t599 (599)"
    for row in rows[:: len(rows) // 50]:
        first = [int(re.search(r"\((\d+)\)", row[i])[1]) for i in (4, 2)]
        part = weights[first[0] : first[0] + 3, first[1] : first[1] + 3]
        assert row[5] == pytest.approx(float(part.max()))
    short = export.figure_table(head_heatmap(weights[:100, :100], tokens[:100], LIGHT))[1]
    assert all(row[2] == f"t{row[1]:.0f}" and row[4] == f"t{row[3]:.0f}" for row in short)
    with np.load(io.BytesIO(export.Picture("p", figure).npz())) as file:
        assert file["x_labels"].tolist() == tokens
        assert file["block"] == 3


def test_numbers_that_a_figure_does_not_carry_are_in_every_file():
    values = np.array([[0.5, np.nan], [0.25, 1.0]])
    drawn = head_map(values, LIGHT, bounds=(0, 1), selected=(0, 0), name="induction")
    picture = export.Picture("p", drawn, table=lambda: export.head_table(["induction"], values))
    with np.load(io.BytesIO(picture.npz()), allow_pickle=False) as file:
        assert file["table_induction"].tolist() == [0.5, 0.25, 1.0]
        assert file["table_head"].tolist() == [0, 0, 1]
    told = json.loads(picture.json())
    assert told["layout"]["meta"]["rows"] == [[0, 0, 0.5], [1, 0, 0.25], [1, 1, 1.0]]
    assert isinstance(go.Figure(told), go.Figure)
    words = export.Picture("p", drawn, table=lambda: (["token", "loss"], [["=a", 1.5], ["b", ""]]))
    with np.load(io.BytesIO(words.npz()), allow_pickle=False) as file:
        assert file["table_token"].tolist() == ["=a", "b"]
        assert np.isnan(file["table_loss"][1])


def test_bars_and_maps_have_rows_as_well():
    bars = compare_predictions(["x", "y"], [0.5, 0.25], [0.1, 0.75], LIGHT)
    rows = rows_of(export.Picture("p", bars).csv())
    assert [float(r["value"]) for r in rows] == [0.5, 0.25, 0.1, 0.75]
    values = np.array([[0.5, np.nan]])
    cells = head_map(values, LIGHT, bounds=(0, 1), selected=(0, 0), name="induction")
    assert len(rows_of(export.Picture("p", cells).csv())) == 2


def test_a_table_takes_the_place_of_what_an_image_does_not_carry():
    figure = head_heatmap(pattern(), TOKENS, LIGHT)
    made = export.Picture("p", figure, table=lambda: (["a"], [[1]])).csv()
    assert rows_of(made) == [{"a": "1"}]


def test_a_page_needs_no_network_and_shows_what_it_is_told():
    figure = head_heatmap(pattern(), TOKENS, LIGHT)
    pictures = [export.Picture("one", figure, "from <a> to b"), export.Picture("two", figure)]
    facts = {"Token ids": [1, 2], "Weights": "abc<script>"}
    text = export.page("A title", pictures, facts, "<script>alert(1)</script>")
    assert text.count("plotly.js v") == 1  # once, inside
    assert not re.search(r"<(script|link)[^>]+(src|href)=", text)
    assert "from &lt;a&gt; to b" in text
    assert "&lt;script&gt;alert(1)" in text
    assert "abc&lt;script&gt;" in text
    assert "[1, 2]" in text


def test_no_token_ends_the_script_that_a_page_draws_with():
    token = "</script><script>alert(1)</script>"
    figure = head_heatmap(pattern(), [token] * len(TOKENS), LIGHT)
    text = export.page("A title", [export.Picture("one", figure)], {}, "")
    assert token not in text


def test_versions_name_what_computed():
    found = export.versions()
    assert {"Python", "torch", "plotly", "streamlit"} <= set(found)
