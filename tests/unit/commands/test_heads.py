"""`mha-viz heads`: every measure of every head."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from support.command import Done

from mha_viz import heads
from mha_viz.checkpoints import load

Command = Callable[..., Done]
TEXT = "the cat sat on the mat"


def test_it_prints_what_measure_returns(command: Command, folder: Path) -> None:
    done = command("heads", folder, TEXT, "--seeds", "2")
    assert done.code == 0
    found = pd.read_csv(io.StringIO(done.out), comment="#")
    expected = heads.measure(load(folder, device="cpu"), TEXT, seeds=2)
    assert list(found.columns) == list(expected.columns)
    np.testing.assert_array_equal(found.to_numpy(float), expected.to_numpy(float))
    assert "# Seeds: 2" in done.out


def test_without_a_text_it_says_random_tokens(
    command: Command, folder: Path, tmp_path: Path
) -> None:
    assert command("heads", folder, "--seeds", "1", "-o", "h.json").code == 0
    found = json.loads((tmp_path / "h.json").read_text(encoding="utf-8"))
    assert found["provenance"]["Measured on"] == "random tokens"
    assert not [name for name in found["provenance"] if name.startswith("Text")]
    assert len(found["induction"]) == 8
    assert found["induction_low"][0] is None  # one seed has no interval
