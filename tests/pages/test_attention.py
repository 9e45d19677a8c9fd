"""The Attention page as a script. What needs a browser is in tests/browser/test_attention.py."""

import base64
from functools import partial

import numpy as np
import pytest
from support.script import ROOT, figures, html, lead, opened, said

from mha_viz.app.samples import DEFAULT
from mha_viz.figures import scale
from mha_viz.heads.profile import text_scores
from mha_viz.model import Model

app = partial(opened, "attention")


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def test_the_first_page_shows_the_bundled_model_on_a_sample() -> None:
    test = app()
    assert not test.exception
    assert said(test) == ""
    grid, heatmap = figures(test)
    assert grid["data"][0]["type"] == "bar"
    assert heatmap["data"][0]["type"] == "heatmap"
    assert ">L3 H0</b>" in lead(test)
    assert test.text_area(key="text").value == DEFAULT


def test_one_token_looks_at_itself() -> None:
    test = app(text="a")
    assert not test.exception
    assert " · 1 token · <b" in lead(test)
    assert "at least two tokens" in html(test)


def test_dark_is_drawn_in_dark_colours() -> None:
    test = app(theme="dark")
    assert figures(test)[1]["data"][0]["colorscale"][0][1] == "#23252F"


def test_the_measures_are_those_of_the_heads_page_with_special_tokens_too(bundled: Model) -> None:
    text = "<|endoftext|>The king gave the ring.<|endoftext|>The queen gave"
    test = app(text=text, at="L0H1")
    trace = bundled.trace(text)
    queries = f"queries 1 to {trace.n_tokens - 1} of this text that are not special tokens"
    assert f"Means over {queries}" in html(test)
    scores = text_scores(trace)
    for name in ("first_token", "previous_token", "self", "entropy"):
        assert f"<b>{scores[name][0, 1]:.2f}</b>" in html(test)
    assert "that are not special tokens" not in html(app())
    only = html(app(text="a<|endoftext|><|endoftext|>"))
    assert "need at least one token after the first" in only


@pytest.mark.parametrize(
    ("colour", "name"), [("vs uniform", "share"), ("√ weight", "sqrt"), ("weight", "weight")]
)
def test_a_long_text_shows_the_strongest_colour_of_each_block(
    bundled: Model, colour: str, name: scale.Scale
) -> None:
    text = "one two three four five " * 60
    trace = bundled.trace(text)
    test = app(text=text, at="L0H1", colour=colour)
    assert not test.exception
    (heatmap,) = figures(test)[1]["data"]
    places = scale.position(trace.pattern(0, 1), name)
    assert 256 < trace.n_tokens <= 512
    sent = heatmap["z"]
    drawn = np.frombuffer(base64.b64decode(sent["bdata"]), dtype=sent["dtype"])
    drawn = drawn.reshape([int(n) for n in sent["shape"].split(",")])
    for row, column in ((0, 0), (5, 2), (100, 0), (120, 119)):
        cell = places[2 * row : 2 * row + 2, 2 * column : 2 * column + 2]
        assert drawn[row, column] == pytest.approx(cell.max(), abs=1e-6)
    notes = " ".join(text.value for text in (*test.markdown, *test.caption))
    relative = "relative to uniform " if name == "share" else ""
    assert f"each cell shows the largest weight {relative}in a 2 × 2 block" in notes
