"""The Attention page as a script. What needs a browser is in tests/browser/test_attention.py."""

import base64
from functools import partial

import numpy as np
import pytest
from support.script import (
    ROOT,
    button,
    component,
    figures,
    html,
    lead,
    opened,
    said,
    texts_with_help,
)

from mha_viz.analysis.logit_attribution import heads_towards
from mha_viz.app.samples import DEFAULT, SAMPLES
from mha_viz.figures import scale
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
    assert ">L3 H3</b>" in lead(test)  # it writes most towards the next token
    assert test.text_area(key="text").value == DEFAULT


def test_one_token_looks_at_itself() -> None:
    test = app(text="a")
    assert not test.exception
    assert " · 1 token · <b" in lead(test)


def test_dark_is_drawn_in_dark_colours() -> None:
    test = app(theme="dark")
    assert figures(test)[1]["data"][0]["colorscale"][0][1] == "#23252F"


def test_the_heads_that_matter_are_those_that_write_most_towards_the_next_token(
    bundled: Model,
) -> None:
    data = component(app(), "matter")
    trace = bundled.trace(DEFAULT)
    token = int(trace.logits.argmax())
    effects = heads_towards(bundled, trace.token_ids, token)
    five = sorted(effects.ravel(), reverse=True)[:5]
    assert [effect for _, effect in data["heads"]] == pytest.approx(five, abs=1e-4)
    assert [head for head, _ in data["heads"]] == ["L3H3", "L3H0", "L0H2", "L3H2", "L3H4"]
    assert data["sum"] == pytest.approx(effects.sum(), abs=1e-3)
    assert data["score"] == pytest.approx(trace.logits[token] - trace.logits.mean(), abs=1e-3)
    label, probability = data["expects"][0]
    assert (label, round(probability, 2)) == ("·ring", 0.83)


def test_the_prediction_belongs_to_the_selected_token(bundled: Model) -> None:
    data = component(app(token="7"), "matter")
    first = bundled.trace_ids(bundled.trace(DEFAULT).token_ids[:8])
    (expected,) = bundled.read([int(first.logits.argmax())])
    assert data["token"] == 7
    assert data["expects"][0][0] == expected.label


def test_another_text_opens_on_another_head_until_one_is_selected() -> None:
    test = app()
    test.text_area(key="text").set_value("one two three four five one two three").run()
    opened_on = component(test, "strip")["at"]
    assert opened_on != "L3H3"
    assert opened_on == component(test, "matter")["heads"][0][0]
    test.session_state["at"] = "L2H5"
    test.run()
    test.text_area(key="text").set_value(DEFAULT).run()
    assert component(test, "strip")["at"] == "L2H5"
    assert component(app(at="L0H1"), "strip")["at"] == "L0H1"


def test_the_selected_head_has_its_name_with_what_it_rests_on() -> None:
    test = app(at="L3H4")
    assert '<span class="head-name">induction · sink</span>' in lead(test)
    help_of_title = next(help for text, help in texts_with_help(test) if 'aria-level="1"' in text)
    assert "threshold 0.3" in help_of_title
    assert "95% interval" in help_of_title
    assert '<span class="head-name">no clear role</span>' in lead(app(at="L3H5"))


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


def test_the_first_screen_says_what_is_seen_until_it_is_closed() -> None:
    test = app()
    assert "A <b>head</b> is one way of looking; this model has 24." in html(test)
    button(test, "Not now").click().run()
    assert "one way of looking" not in html(test)
    assert "the last “golden” looks at “ring”" in html(test)
    test.text_area(key="text").set_value("Another text").run()
    assert "Look for" not in html(test)


def test_the_text_can_be_changed_without_the_sidebar() -> None:
    test = app()
    assert test.text_area(key="own_text").value == DEFAULT
    test.text_area(key="own_text").set_value("A red fox").run()
    assert test.text_area(key="text").value == "A red fox"
    button(test, "Once upon a time").click().run()
    assert test.text_area(key="own_text").value == SAMPLES["Once upon a time"]
    assert component(test, "strip")["at"] == "L0H1"
    button(test, "The cat and the rug").click().run()
    assert component(test, "strip")["at"] == "L3H3"  # not the head that another text opens on
