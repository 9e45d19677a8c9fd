"""The exported data of a figure are the numbers that it draws, with their labels."""

import io
import re

import numpy as np
import plotly.graph_objects as go
import pytest
from support.exported import TOKENS, pattern, rows_of

from mha_viz.export import Picture, figure_table, safe
from mha_viz.figures.head_map import head_map
from mha_viz.figures.heatmap import head_heatmap
from mha_viz.figures.predictions import compare_predictions
from mha_viz.figures.theme import LIGHT


def test_labels_are_text_without_markup() -> None:
    drawn = go.Figure(
        go.Heatmap(z=[[1.0, 2.0]]),
        {"xaxis": {"tickvals": [0, 1], "ticktext": ["The<br>0", "<b>&lt;b&gt;</b>"]}},
    )
    assert [row[2] for row in figure_table(drawn)[1]] == ["The 0", "<b>"]


def test_the_csv_of_a_heatmap_holds_each_weight_with_its_tokens() -> None:
    weights = pattern()
    rows = rows_of(Picture("p", head_heatmap(weights, TOKENS, LIGHT)).csv())
    assert len(rows) == 15
    for row in rows:
        query, key = int(float(row["y"])), int(float(row["x"]))
        assert float(row["value"]) == pytest.approx(weights[query, key], abs=1e-7)
        # A spreadsheet must run nothing; what was escaped for Plotly is text again.
        assert row["x label"] == safe(TOKENS[key])
        assert row["y label"] == safe(TOKENS[query])


def test_every_cell_of_a_long_text_has_its_labels() -> None:
    tokens = [f"t{i}" for i in range(600)]
    weights = np.tril(np.random.default_rng(0).random((600, 600), dtype=np.float32))
    figure = head_heatmap(weights, tokens, LIGHT)
    assert len(figure.layout.xaxis.tickvals) < 50
    header, rows = figure_table(figure)
    assert header[5] == "value (the largest of 3 x 3)"
    assert rows[-1][2] == rows[-1][4] == "t597 (597) … t599 (599)"
    for row in rows[:: len(rows) // 50]:
        first = [int(re.search(r"\((\d+)\)", row[i])[1]) for i in (4, 2)]
        part = weights[first[0] : first[0] + 3, first[1] : first[1] + 3]
        assert row[5] == pytest.approx(float(part.max()))
    short = figure_table(head_heatmap(weights[:100, :100], tokens[:100], LIGHT))[1]
    assert all(row[2] == f"t{row[1]:.0f}" and row[4] == f"t{row[3]:.0f}" for row in short)
    with np.load(io.BytesIO(Picture("p", figure).npz())) as file:
        assert file["x_labels"].tolist() == tokens
        assert file["block"] == 3


def test_bars_and_maps_have_rows() -> None:
    bars = compare_predictions(["x", "y"], [0.5, 0.25], [0.1, 0.75], LIGHT)
    rows = rows_of(Picture("p", bars).csv())
    assert [float(r["value"]) for r in rows] == [0.5, 0.25, 0.1, 0.75]
    values = np.array([[0.5, np.nan]])
    cells = head_map(values, LIGHT, bounds=(0, 1), selected=(0, 0), name="induction")
    assert len(rows_of(Picture("p", cells).csv())) == 2
