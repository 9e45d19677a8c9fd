"""A figure as JSON, CSV, npz and a script, each with its origin."""

import io
import json

import numpy as np
import plotly.graph_objects as go
import pytest
from support.exported import TOKENS, pattern, picture, rows_of

ORIGIN = {"Model": "bundled", "Text": "a\n# b", "Token ids": [1, 2]}


def test_the_json_is_a_figure_of_plain_lists_with_its_numbers_and_origin() -> None:
    loaded = json.loads(picture().json(ORIGIN))
    z = loaded["data"][0]["z"]
    assert isinstance(z, list)
    assert z[0][1] is None
    assert loaded["numbers"]["pattern"][4][4] == pytest.approx(float(pattern()[4, 4]), abs=1e-7)
    assert loaded["numbers"]["tokens"] == TOKENS
    assert loaded["provenance"] == ORIGIN
    assert isinstance(go.Figure(loaded), go.Figure)


def test_the_npz_opens_without_pickle_and_holds_true_weights() -> None:
    with np.load(io.BytesIO(picture().npz(ORIGIN)), allow_pickle=False) as file:
        assert set(file.files) == {"pattern", "tokens", "layer", "provenance"}
        assert file["tokens"].tolist() == TOKENS
        np.testing.assert_array_equal(file["pattern"], pattern())
        assert json.loads(str(file["provenance"])) == ORIGIN


def test_the_csv_says_its_origin_before_its_rows() -> None:
    csv = picture().csv(ORIGIN)
    assert csv.startswith('# Model: bundled\r\n# Text: "a\\n# b"\r\n# Token ids: [1, 2]\r\n')
    assert len(rows_of(csv)) == 15


def test_the_script_starts_with_the_title_and_the_origin() -> None:
    script = picture("A title").script(ORIGIN)
    assert script.startswith("# A title\n#\n# Model: bundled\n# Token ids: [1, 2]\n")
