"""`mha-viz figure`: what is drawn, and in which files."""

import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from support.command import Done

from mha_viz.checkpoints import load
from mha_viz.commands import browser

Command = Callable[..., Done]
TEXT = "the cat sat on the <b>mat"


def test_one_head_as_data(command: Command, folder: Path, tmp_path: Path) -> None:
    assert command("figure", folder, TEXT, "--head", "L1H2", "-o", "f.npz").code == 0
    with np.load(tmp_path / "f.npz") as found:
        expected = load(folder, device="cpu").trace(TEXT).pattern(1, 2)
        np.testing.assert_array_equal(found["pattern"], expected)
        assert (found["layer"], found["head"]) == (1, 2)


@pytest.mark.parametrize(
    ("options", "title"),
    [
        ([], "all heads"),
        (["--head", "L1H2"], "L1 H2"),
        (["--head", "L1H2", "--head", "L0H0", "--lines"], "lines of L1 H2, L0 H0"),
    ],
)
def test_each_kind_as_a_page_and_as_json(
    command: Command, folder: Path, tmp_path: Path, options: list[str], title: str
) -> None:
    assert command("figure", folder, TEXT, *options, "-o", "f.html", "--theme", "dark").code == 0
    page = (tmp_path / "f.html").read_text(encoding="utf-8")
    assert f"{folder}, {title}</h1>" in page
    assert "color-scheme:dark" in page
    assert "<b>mat" not in page
    assert command("figure", folder, TEXT, *options, "-o", "f.json").code == 0
    found = json.loads((tmp_path / "f.json").read_text(encoding="utf-8"))
    assert found["data"]
    assert found["provenance"]["Text"] == TEXT
    assert command("figure", folder, TEXT, *options, "-o", "f.csv").code == 0
    assert '"weight"' in (tmp_path / "f.csv").read_text(encoding="utf-8")


@pytest.mark.parametrize("ending", [".svg", ".png"])
def test_a_picture_is_what_the_browser_drew(
    command: Command, folder: Path, tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browser, "find", lambda: "a browser")
    drawn = io.BytesIO(b"<svg></svg>")
    if ending == ".png":
        Image.new("RGB", (2, 3)).save(drawn, "png")
    monkeypatch.setattr(browser, "image", lambda figure, kind: drawn.getvalue())
    assert command("figure", folder, TEXT, "-o", f"f{ending}").code == 0
    written = (tmp_path / f"f{ending}").read_bytes()
    if ending == ".svg":
        assert re.fullmatch(rb"<svg><metadata>.*Weights.*</metadata></svg>", written)
    else:
        with Image.open(io.BytesIO(written)) as picture:
            assert picture.size == (2, 3)
            assert "Weights" in picture.text["Provenance"]


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--lines"], 2, "--lines needs --head"),
        (["--head", "L0H0", "--head", "L0H1"], 2, "can be drawn with --lines"),
        (["--head", "L9H9"], 1, "L9 H9 is not in"),
    ],
)
def test_what_does_not_fit_is_refused(
    command: Command, folder: Path, tmp_path: Path, options: list[str], code: int, words: str
) -> None:
    done = command("figure", folder, TEXT, *options, "-o", "f.html")
    assert done.code == code
    assert words in done.err
    assert not list(tmp_path.iterdir())
