"""The tour waits for what it asks, does it for those who skip, and can be linked to and left."""

from functools import partial

import pytest
from support.script import ROOT, button, component, html, opened

from mha_viz.app.widgets.tour import COPIES, PREVIOUS, STEPS
from mha_viz.app.work import head_names
from mha_viz.model import Model

app = partial(opened, "attention")


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def test_a_step_waits_for_what_it_asks() -> None:
    test = app()
    button(test, "Start the tour").click().run()
    assert "<b>1 of 7</b>" in html(test)
    for name, value in [("at", "L0H0"), ("at", "L0H1")]:
        assert "<b>1 of 7</b>" in html(test)
        test.session_state[name] = value
        test.run()
    assert "<b>2 of 7</b>" in html(test)
    test.session_state["token"] = 14
    test.run()
    assert "<b>3 of 7</b>" in html(test)
    assert test.query_params["tour"] in ("3", ["3"])


def test_skipping_shows_the_answer_of_every_step() -> None:
    test = app()
    button(test, "Start the tour").click().run()
    for number in range(1, len(STEPS)):
        assert f"<b>{number} of {len(STEPS)}</b>" in html(test)
        button(test, "Skip this step").click().run()
        assert not test.exception
    assert component(test, "strip")["at"] == "L3H3"
    button(test, "End").click().run()
    assert "7 of 7" not in html(test)
    assert "tour" not in test.query_params


def test_a_link_opens_a_step_on_its_text_and_no_nonsense() -> None:
    test = app(tour="4")
    assert "<b>4 of 7</b>" in html(test)
    assert component(test, "strip")["at"] == "L3H3"
    for nonsense in ("", "x", "-1"):
        other = app(tour=nonsense)
        assert not other.exception
        assert "Start the tour" in [one.label for one in other.button]


def test_the_heads_of_the_tour_are_what_it_calls_them(bundled: Model) -> None:
    names = head_names.of(bundled)
    assert names is not None
    assert all(names[head][0].kind.name == "previous token" for head in PREVIOUS)
    assert all(names[head][0].kind.name == "induction" for head in COPIES)
