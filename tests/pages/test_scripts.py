"""The script of every figure of every page makes the same figure and the same numbers again."""

import io
import json
import os
import subprocess
import sys
from base64 import b64decode
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
from numpy.typing import NDArray
from streamlit.testing.v1 import AppTest
from support.parts import EVERY, SMALL_WORK
from support.script import ROOT, button, finished, opened

import mha_viz.checkpoints
from mha_viz.export import Picture
from mha_viz.model import Model

TEXT = 'A "#" and a <b>: the cat sat.\nA "#" and a'
LINKS = [(page, {key: part} if key else {}) for page, key, part in EVERY] + [
    ("head", {"look": "Sink", "sink_as": "value-weighted"}),
    ("head", {"look": "Sink", "sink_as": "hidden, renormalised"}),
    ("next_token", {"expects": "Generate", "go_on": "sample"}),
    ("next_token", {"expects": "Generate", "go_on": "your own", "own": " ran"}),
    ("heads", {"numbers_of": "Combined heads", "aggregate": "rollout"}),
    ("pruning", {"lab": "Ablation", "way": "position-wise mean"}),
    ("shapes", {"step": "softmax", "numbers": "true"}),
    ("shapes", {"step": "q k v"}),
    ("shapes", {"step": "scores"}),
    ("shapes", {"step": "z"}),
    ("shapes", {"step": "output"}),
    ("shapes", {"shapes": "Memory layout", "layout": "Merge"}),
    ("shapes", {"tensors": "random", "numbers": "true"}),
    ("shapes", {"shapes": "Bugs", "mistake": "no mask"}),
    ("shapes", {"shapes": "Bugs", "mistake": "no scale"}),
    ("shapes", {"shapes": "Bugs", "mistake": "no transpose back"}),
    ("variants", {"variants": "Masks", "mask": "cross-attention"}),
    ("variants", {"variants": "KV cache", "cache_G": "2"}),
]
MEASURED = {"race", "part_times", "attention_memory", "token_times", "attention_times"}


def named(part: str | dict[str, str]) -> str:
    return part if isinstance(part, str) else ", ".join(part.values())


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scripts load each model once, and open no browser."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(mha_viz.checkpoints, "load", cache(mha_viz.checkpoints.load))
    monkeypatch.setattr(go.Figure, "show", lambda figure: None)


def shown(page: str, link: dict[str, str]) -> AppTest:
    """A page with the export panel open, once its work is done."""
    test = opened(page, text=TEXT, export="true", **SMALL_WORK | {"lab": "Ablation"} | link)
    test.session_state["export"] = True
    if page == "training":
        test.session_state["train_steps"] = 50
        button(test.run(), "Start").click()
    return finished(test.run())


def pictures(test: AppTest) -> Iterator[tuple[str, Picture]]:
    yield from test.session_state["pictures"].items()


@pytest.mark.parametrize(("page", "link"), LINKS, ids=named)
def test_a_script_makes_the_figure_and_its_numbers_again(page: str, link: dict[str, str]) -> None:
    test = shown(page, link)
    assert not test.exception
    found = list(pictures(test))
    assert found or (page, link) in WITHOUT_FIGURES
    for key, picture in found:
        assert bool(picture.recipe.cannot) == (key in MEASURED)
        if picture.recipe.cannot:
            assert picture.recipe.cannot in picture.script()
            continue
        made: dict[str, object] = {}
        exec(compile(picture.script({"Model": "bundled"}), key, "exec"), made)
        same_numbers(made["data"].arrays, picture.data.arrays)
        same_figure(drawn(made["figure"]), drawn(picture.figure), key)


RUN = """
import runpy, sys
import plotly.graph_objects as go
go.Figure.show = lambda figure: print(figure.to_json())
runpy.run_path(sys.argv[1], run_name="__main__")
"""


@pytest.mark.parametrize(
    ("page", "link"),
    [
        ("attention", {}),
        ("head", {"look": "Sink"}),
        ("next_token", {"expects": "Generate"}),
        ("pruning", {"lab": "Importance"}),
        ("variants", {"variants": "KV cache"}),
    ],
    ids=named,
)
def test_a_script_runs_alone_in_another_folder(
    page: str, link: dict[str, str], tmp_path: Path
) -> None:
    key, picture = next(pictures(shown(page, link)))
    file = tmp_path / "figure.py"
    file.write_text(picture.script({"Model": "bundled"}), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", RUN, file],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    same_figure(json.loads(done.stdout), drawn(picture.figure), key)


WITHOUT_FIGURES = [
    ("pruning", {"lab": "Tasks"}),
    ("pruning", {"lab": "Prune"}),
    ("shapes", {"shapes": "The module"}),
]


def drawn(figure: go.Figure) -> dict:
    return json.loads(figure.to_json())


def same_figure(found: object, wanted: object, where: str) -> None:
    """The same but for the last digits of numbers, which may differ from process to process."""
    if isinstance(wanted, dict) and "bdata" in wanted:
        found, wanted = decoded(found), decoded(wanted)
    if isinstance(wanted, dict) and isinstance(found, dict):
        assert list(found) == list(wanted), where
        for key, value in wanted.items():
            same_figure(found[key], value, f"{where} {key}")
    elif isinstance(wanted, list) and isinstance(found, list):
        assert len(found) == len(wanted), where
        for number, (one, other) in enumerate(zip(found, wanted, strict=True)):
            same_figure(one, other, f"{where} {number}")
    elif isinstance(wanted, float) and isinstance(found, float):
        assert found == pytest.approx(wanted, rel=1e-4, abs=1e-6, nan_ok=True), where
    else:
        assert found == wanted, where


def decoded(array: object) -> object:
    """The numbers of an array as Plotly writes it, in base64."""
    assert isinstance(array, dict)
    return np.frombuffer(b64decode(array["bdata"]), array["dtype"]).tolist()


def same_numbers(found: dict[str, NDArray], wanted: dict[str, NDArray]) -> None:
    assert list(found) == list(wanted)
    for name, array in wanted.items():
        if array.dtype.kind in "fiub":
            np.testing.assert_allclose(found[name], array, atol=1e-6, err_msg=name)
        else:
            np.testing.assert_array_equal(found[name], array, err_msg=name)


@pytest.mark.parametrize(("page", "link"), LINKS[:12], ids=named)
def test_every_file_can_be_read_and_says_where_it_is_from(page: str, link: dict[str, str]) -> None:
    origin = {"Model": "bundled", "Text": TEXT, "Token ids": [1, 2]}
    for _, picture in pictures(shown(page, link)):
        header, rows = picture.data.table()
        assert rows
        assert not any(name.startswith(("x", "y", "z", "trace")) for name in header)
        csv = picture.csv(origin)
        assert csv.startswith('# Model: bundled\r\n# Text: "A \\"#\\" and')
        frame = pd.read_csv(io.StringIO(csv), comment="#", keep_default_na=False)
        assert (list(frame.columns), len(frame)) == (header, len(rows))
        with np.load(io.BytesIO(picture.npz(origin)), allow_pickle=False) as file:
            assert json.loads(str(file["provenance"])) == origin
            assert set(picture.data.arrays) < set(file.files)
        read = json.loads(picture.json(origin))
        assert read["provenance"] == origin
        assert set(read["numbers"]) == set(picture.data.arrays)
        assert isinstance(go.Figure(read), go.Figure)


def test_a_heatmap_of_a_long_text_holds_every_weight(bundled: Model) -> None:
    text = "The king gave a ring. " * 60
    test = opened("attention", text=text, at="L3H4")
    data = test.session_state["pictures"]["head_map"].data
    trace = bundled.trace(text)
    assert trace.n_tokens > 256
    np.testing.assert_allclose(data.arrays["pattern"], trace.pattern(3, 4), atol=1e-6)
    assert data.arrays["tokens"].tolist() == list(trace.tokens)
    assert data.arrays["token_ids"].tolist() == trace.token_ids
    assert (data.arrays["layer"], data.arrays["head"]) == (3, 4)
    header, rows = data.table()
    assert header == ["query", "query token", "key", "key token", "weight"]
    assert len(rows) == trace.n_tokens * (trace.n_tokens + 1) // 2


def test_an_uploaded_text_has_no_script() -> None:
    test = opened("pruning", lab="Importance", score_on="reference text")
    test.session_state["reference_file"] = ("mine.txt", b"One two three.\n\nFour five six.")
    picture = finished(test.run()).session_state["pictures"]["agreement"]
    assert picture.recipe.cannot == "It uses an uploaded file, mine.txt."
    assert "No script can reproduce this figure. It uses an uploaded file" in picture.script()
