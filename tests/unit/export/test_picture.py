"""A figure as JSON and npz, and with a table of its own."""

import io
import json

import numpy as np
import plotly.graph_objects as go
import pytest
from support.exported import TOKENS, pattern, rows_of

from mha_viz.export import Picture, head_table
from mha_viz.figures.head_map import head_map
from mha_viz.figures.heatmap import head_heatmap
from mha_viz.figures.theme import LIGHT


def test_the_json_is_a_figure_of_plain_lists() -> None:
    figure = head_heatmap(pattern(), TOKENS, LIGHT)
    loaded = json.loads(Picture("p", figure).json())
    z = loaded["data"][0]["customdata"]
    assert isinstance(z, list)
    assert z[0][1] is None
    assert z[4][4] == pytest.approx(float(pattern()[4, 4]), abs=1e-7)
    assert isinstance(go.Figure(loaded), go.Figure)


def test_the_npz_opens_without_pickle_and_holds_labels_and_numbers() -> None:
    figure = head_heatmap(pattern(), TOKENS, LIGHT)
    with np.load(io.BytesIO(Picture("p", figure).npz()), allow_pickle=False) as file:
        assert file["x_labels"].tolist() == TOKENS
        found = file["trace0_customdata"]
        np.testing.assert_allclose(np.nan_to_num(found), pattern(), atol=1e-7)


def test_a_table_is_in_every_file() -> None:
    values = np.array([[0.5, np.nan], [0.25, 1.0]])
    drawn = head_map(values, LIGHT, bounds=(0, 1), selected=(0, 0), name="induction")
    picture = Picture("p", drawn, table=lambda: head_table(["induction"], values))
    with np.load(io.BytesIO(picture.npz()), allow_pickle=False) as file:
        assert file["table_induction"].tolist() == [0.5, 0.25, 1.0]
        assert file["table_head"].tolist() == [0, 0, 1]
    loaded = json.loads(picture.json())
    assert loaded["layout"]["meta"]["rows"] == [[0, 0, 0.5], [1, 0, 0.25], [1, 1, 1.0]]
    assert isinstance(go.Figure(loaded), go.Figure)
    texts = Picture("p", drawn, table=lambda: (["token", "loss"], [["=a", 1.5], ["b", ""]]))
    with np.load(io.BytesIO(texts.npz()), allow_pickle=False) as file:
        assert file["table_token"].tolist() == ["=a", "b"]
        assert np.isnan(file["table_loss"][1])


def test_a_table_replaces_the_data_of_the_figure() -> None:
    figure = head_heatmap(pattern(), TOKENS, LIGHT)
    made = Picture("p", figure, table=lambda: (["a"], [[1]])).csv()
    assert rows_of(made) == [{"a": "1"}]
