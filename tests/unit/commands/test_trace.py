"""`mha-viz trace`: what its files hold."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.command import Done

from mha_viz.checkpoints import load
from mha_viz.commands import trace as command_module
from mha_viz.trace import Trace

Command = Callable[..., Done]
TEXT = "the cat sat on the mat"


@pytest.fixture
def expected(folder: Path) -> Trace:
    return load(folder, device="cpu").trace(TEXT)


def test_npz_holds_everything(
    command: Command, folder: Path, tmp_path: Path, expected: Trace
) -> None:
    assert command("trace", folder, TEXT, "-o", "t.npz", "--patterns", "float32").code == 0
    with np.load(tmp_path / "t.npz") as found:
        for name in ("q", "k", "v", "logits"):
            np.testing.assert_array_equal(found[name], getattr(expected, name))
        np.testing.assert_array_equal(found["patterns"][1], expected.patterns(1))
        assert found["token_ids"].tolist() == expected.token_ids
        facts = json.loads(str(found["provenance"]))
    assert facts["Text"] == TEXT
    assert facts["Weights"].startswith("SHA-256 ")


def test_json_holds_the_same(
    command: Command, folder: Path, tmp_path: Path, expected: Trace
) -> None:
    assert command("trace", folder, TEXT, "-o", "t.json", "--patterns", "float32").code == 0
    found = json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))
    assert found["tokens"] == list(expected.tokens)
    np.testing.assert_array_equal(np.float32(found["q"]), expected.q)
    np.testing.assert_array_equal(np.float32(found["patterns"][1]), expected.patterns(1))
    assert found["provenance"]["Text"] == TEXT


def test_csv_has_a_row_for_each_weight(
    command: Command, folder: Path, tmp_path: Path, expected: Trace
) -> None:
    assert command("trace", folder, TEXT, "-o", "t.csv").code == 0
    lines = (tmp_path / "t.csv").read_text(encoding="utf-8").splitlines()
    rows = list(csv.reader(line for line in lines if not line.startswith("#")))
    assert rows[0] == ["layer", "head", "query", "query token", "key", "key token", "weight"]
    T = expected.n_tokens
    assert len(rows) - 1 == 2 * 4 * T * (T + 1) // 2
    for layer, head, query, _, key, _, weight in rows[1::7]:
        pattern = expected.pattern(int(layer), int(head))
        assert np.float32(float(weight)) == pattern[int(query), int(key)]


def test_too_many_rows_are_refused(
    command: Command, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_module, "MAX_ROWS", 10)
    done = command("trace", folder, TEXT, "-o", "t.csv")
    assert done.code == 1
    assert "one for each weight; the limit is 10. Write .npz" in done.err
    assert not list(tmp_path.iterdir())


def test_a_long_text_is_cut_where_asked(command: Command, folder: Path, tmp_path: Path) -> None:
    assert command("trace", folder, TEXT * 20, "-o", "t.json", "--cut", "start").code == 0
    facts = json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))["provenance"]
    assert facts["Tokens"].startswith("64; dropped at the start: ")


def test_another_ending_is_the_wrong_usage(command: Command, folder: Path) -> None:
    done = command("trace", folder, TEXT, "-o", "t.txt")
    assert done.code == 2
    assert "'t.txt' does not end in .npz, .json, .csv" in done.err


def test_a_csv_has_no_type_of_patterns(command: Command, folder: Path, tmp_path: Path) -> None:
    done = command("trace", folder, TEXT, "-o", "t.csv", "--patterns", "float16")
    assert done.code == 2
    assert "--patterns is for .npz and .json" in done.err
    assert not list(tmp_path.iterdir())
