"""SVG and PNG by a Chromium of this machine."""

import html
import io
import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import plotly.graph_objects as go
import pytest
from PIL import Image
from support.browser import chromium
from support.command import Done

from mha_viz.commands import browser
from mha_viz.errors import OutputError

FIGURE = go.Figure(go.Bar(x=["<b>", "é & “ü”"], y=[1, 2]), {"width": 300, "height": 200})


@pytest.fixture
def pretend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """`pretend(code)` puts a script in the place of the browser."""

    def write(code: str) -> Path:
        script = tmp_path / "browser"
        script.write_text(f"#!/bin/sh\n{code}\n")
        script.chmod(0o755)
        monkeypatch.setenv(browser.VARIABLE, str(script))
        return script

    return write


@pytest.mark.skipif(chromium() is None, reason="no Chromium on this machine")
def test_a_picture_has_the_size_of_the_figure_and_its_text() -> None:
    svg = browser.image(FIGURE, ".svg").decode()
    assert svg.startswith("<svg")
    assert 'width="300"' in svg
    assert "é &amp; “ü”" in svg
    png = browser.image(FIGURE, ".png")
    assert png.startswith(b"\x89PNG")
    width, height = int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")
    assert (width, height) == (300 * browser.PIXELS, 200 * browser.PIXELS)


def test_without_a_browser_the_message_says_what_to_do(
    command: Callable[..., Done], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browser, "NAMES", ("no-such-browser",))
    monkeypatch.delenv(browser.VARIABLE, raising=False)
    done = command("figure", folder, "the cat", "-o", "f.svg")
    assert done.code == 1
    assert done.err == (
        "mha-viz: SVG and PNG are drawn by a browser, and Chromium or Chrome is not on this "
        "machine. Install Chromium, set MHA_VIZ_BROWSER to the path of a browser, or write .html.\n"
    )


@pytest.mark.skipif(os.name == "nt", reason="the pretended browser is a shell script")
@pytest.mark.parametrize(
    ("code", "words"),
    [
        (
            "echo cannot open display >&2; exit 1",
            r"could not draw the figure \(cannot open display\)",
        ),
        ("echo '<html></html>'", "could not draw the figure"),
    ],
)
def test_a_browser_that_fails_is_named(
    pretend: Callable[[str], Path], code: str, words: str
) -> None:
    pretend(code)
    with pytest.raises(OutputError, match=words):
        browser.image(FIGURE, ".png")


@pytest.mark.skipif(os.name == "nt", reason="the pretended browser is a shell script")
def test_what_the_browser_printed_is_read(pretend: Callable[[str], Path]) -> None:
    pretend("""echo '<pre id="drawn">data:image/svg+xml,%3Csvg%3E&amp;</pre>'""")
    assert browser.image(FIGURE, ".svg") == b"<svg>&"
    pretend("""echo '<pre id="drawn">data:image/png;base64,aGVsbG8=</pre>'""")
    assert browser.image(FIGURE, ".png") == b"hello"


def test_a_picture_names_its_origin() -> None:
    """As the app writes it: a text of the PNG, metadata of the SVG."""
    origin = {"Model": "a & b <c>", "Text": "naïve"}
    svg = browser.with_origin(b'<svg width="1"><g/></svg>', ".svg", origin).decode()
    found = re.search(r"<metadata>(.*)</metadata>", svg)
    assert found is not None
    assert json.loads(html.unescape(found[1])) == origin
    blank = io.BytesIO()
    Image.new("RGB", (2, 2)).save(blank, "png")
    png = browser.with_origin(blank.getvalue(), ".png", origin)
    with Image.open(io.BytesIO(png)) as picture:
        assert json.loads(picture.text["Provenance"]) == origin
