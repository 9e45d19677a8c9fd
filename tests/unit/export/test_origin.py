"""The origin of a file: model, weights, text or its hash, versions, link and date."""

import hashlib
import json
import re

from mha_viz.export import origin, versions
from mha_viz.export.origin import comments
from mha_viz.model import Model


def test_an_origin_names_model_weights_text_versions_link_and_date(bundled: Model) -> None:
    found = origin(bundled.description, "The king.", {"Head": "L0H1"}, link="http://host/?at=L0H1")
    assert bundled.description.name in str(found["Model"])
    assert bundled.description.weights_hash in str(found["Weights"])
    assert found["Text"] == "The king."
    assert found["Text, SHA-256"] == hashlib.sha256(b"The king.").hexdigest()
    assert (found["Head"], found["Link"]) == ("L0H1", "http://host/?at=L0H1")
    assert versions().items() <= found.items()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", str(found["Created"]))
    assert "Text" not in origin(bundled.description, "long " * 1000)


def test_versions_name_the_installed_packages() -> None:
    assert {"mha_viz", "Python", "torch", "plotly", "streamlit"} <= set(versions())


def test_each_fact_is_one_line_of_comment() -> None:
    facts = {"Text": 'a\n"b"', "Ids": [1, 2], "Odd": "a\u2028b\ud800", "Plain": "é"}
    lines = list(comments(facts))
    assert len(lines) == 4
    assert all(line.startswith("# ") and len(line.splitlines()) == 1 for line in lines)
    assert lines[3] == "# Plain: é"
    assert json.loads(lines[0].removeprefix("# Text: ")) == 'a\n"b"'
