"""Exercises on a page: explanations, the score, and choices that outlive a change of page."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest
from support.script import ROOT, finished, opened, said

from mha_viz.app.pages.many_heads import a_list
from mha_viz.app.widgets.path import STOPS, Stop
from mha_viz.lessons.exercises import answers

TEXT = "The king gave the princess a golden ring"


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(a_list, "RACE", {"d_model": 96, "T": 16})


def page(stop: Stop, **link: str) -> AppTest:
    part = {stop.key: stop.part} if stop.key else {}
    quick = {"bugs_on": "this text"} if stop.part == "Bugs" else {}
    test = finished(opened(stop.page, text=TEXT, **part, **quick, **link))
    assert not test.exception
    return test


def words(test: AppTest) -> str:
    return " ".join(text.value for text in test.markdown)


def choose(test: AppTest, number: int) -> AppTest:
    (radio,) = test.radio
    radio.set_value(radio.options[number])
    return test.run()


def right(stop: Stop, number: int = 0) -> int:
    return answers.on_layer(answers.load(stop.exercises)[number], None).right


@pytest.mark.parametrize("stop", STOPS, ids=lambda stop: f"{stop.page} {stop.part}")
def test_each_part_has_an_exercise_that_says_why(stop: Stop) -> None:
    test = page(stop)
    n = len(answers.load(stop.exercises))
    assert f"<b>Exercise</b> 1 of {n} · " in words(test)
    assert test.radio[0].value is None
    choose(test, right(stop))
    assert "**Right.**" in words(test)
    assert "1 of 1 right first time" in words(test)


def test_a_wrong_choice_is_explained_and_the_first_one_counts() -> None:
    test = page(STOPS[0])
    wrong = next(n for n in range(4) if n != right(STOPS[0]))
    choose(test, wrong)
    assert "**Not quite.**" in words(test)
    assert "0 of 1 right first time" in words(test)
    choose(test, right(STOPS[0]))
    assert "**Right.**" in words(test)
    assert "0 of 1 right first time" in words(test)


def test_choices_the_place_and_the_score_outlive_a_change_of_page() -> None:
    test = page(STOPS[0])
    choose(test, right(STOPS[0]))
    test.button(key="next_exercise").click().run()
    assert "<b>Exercise</b> 2 of" in words(test)
    choose(test, right(STOPS[0], 1))
    test.switch_page("head.py").run()
    assert not test.radio
    test.switch_page("many_heads.py").run()
    assert "<b>Exercise</b> 2 of" in words(test)
    assert "2 of 2 right first time" in words(test)
    assert "**Right.**" in words(test)
    test.button(key="previous_exercise").click().run()
    assert "**Right.**" in words(test)


def test_an_exercise_without_a_single_answer_here_says_what_it_is_computed_on() -> None:
    test = opened("shapes", text="a")
    test.button(key="next_exercise").click().run()
    (note,) = [text for text in test.caption if "random layer" in text.value]
    assert "T = 5" in note.value


def test_in_stage_mode_exercises_are_behind_a_button() -> None:
    test = page(STOPS[0], stage="true")
    (box,) = [box for box in test.expander if box.label == "Exercises"]
    assert box.radio


def test_a_broken_file_is_refused_by_its_line_and_the_page_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "FOLDER", tmp_path)
    name = f"{STOPS[0].exercises}.md"
    (tmp_path / name).write_text("## a kind\n\nWhat?\n\nAnswer: x\n", encoding="utf-8")
    test = page(STOPS[0])
    assert f"{name}, line 5: " in said(test)
    assert test.get("plotly_chart")


def test_a_part_without_a_file_has_no_exercises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "FOLDER", tmp_path)
    test = page(STOPS[0])
    assert said(test) == ""
    assert not test.radio
