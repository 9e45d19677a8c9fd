"""The path through the Learn pages: its order, its questions for any model, and its links."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from streamlit.testing.v1 import AppTest
from support.parts import PARTS
from support.script import ROOT, finished, lead, opened

from mha_viz.app.pages.many_heads import a_list
from mha_viz.app.widgets.path import STOPS, Stop, following, question
from mha_viz.lessons.exercises.answers import FOLDER

LEARN = ("many_heads", "shapes", "variants", "training")
PATH = [
    "Why is one row of weights not enough?",
    "What is the simplest way to have six heads?",
    "Why is W 18 matrices side by side?",
    "How does one row become six heads, without moving a number?",
    "Where do the numbers lie, and when must they be copied?",
    "What is each line for?",
    "Which mistakes would you notice, and which look like success?",
    "What can heads share?",
    "When does T² outweigh the projections?",
    "Do four narrow heads learn more than one wide head?",
]


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(a_list, "RACE", {"d_model": 96, "T": 16})


def shown(stop: Stop, **link: str) -> AppTest:
    test = finished(opened(stop.page, **link, **({stop.key: stop.part} if stop.key else {})))
    assert not test.exception
    return test


def onward(test: AppTest) -> tuple[str, str]:
    """The label of the link to the next stop, and its query; a button if it stays on the page."""
    links = [link.proto for link in test.get("page_link")]
    if links:
        return links[0].label, links[0].query_string
    (button,) = [button for button in test.button if button.key == "next_stop"]
    return button.label, ""


def sized(H: int, G: int | None = None) -> Any:
    return SimpleNamespace(model=SimpleNamespace(config=SimpleNamespace(n_heads=H, n_kv_heads=G)))


def test_every_part_of_a_learn_page_is_a_stop_with_exercises() -> None:
    for page in LEARN:
        key, parts = PARTS[page]
        found = [stop for stop in STOPS if stop.page == page]
        assert sorted(stop.part for stop in found) == sorted(parts)
        assert {stop.key for stop in found} == {key}
    assert all((FOLDER / f"{stop.exercises}.md").is_file() for stop in STOPS)


def test_the_path_has_ten_stops_in_this_order() -> None:
    stop: Stop | None = STOPS[0]
    asked = []
    while stop is not None:
        asked.append(question(sized(6), stop))
        stop = following(stop)
    assert asked == PATH


@pytest.mark.parametrize(
    ("H", "G", "heads", "matrices"),
    [
        (1, None, "one head", "three matrices"),
        (12, None, "twelve heads", "36 matrices"),
        (25, None, "25 heads", "75 matrices"),
        (8, 2, "eight heads", "12 matrices"),
    ],
)
def test_questions_have_the_sizes_of_the_model(
    H: int, G: int | None, heads: str, matrices: str
) -> None:
    asked = " ".join(question(sized(H, G), stop) for stop in STOPS)
    assert f"to have {heads}?" in asked
    assert f"become {heads}," in asked
    assert f"Why is W {matrices} side by side?" in asked


@pytest.mark.parametrize("stop", STOPS, ids=lambda stop: f"{stop.page} {stop.part}")
def test_each_part_opens_with_its_question_and_ends_with_the_next(stop: Stop) -> None:
    test = shown(stop)
    assert question(sized(6), stop).replace("'", "&#x27;") in lead(test)
    label, query = onward(test)
    after = following(stop)
    if after is None:
        assert (label, query) == ("Back to the start of the path", "many=Why+several+heads")
        return
    assert label == f"Next: {question(sized(6), after)}"
    wanted = {after.key: after.part} if after.key and after.page != stop.page else {}
    assert query == "&".join(f"{key}={part.replace(' ', '+')}" for key, part in wanted.items())


def test_a_link_within_a_page_opens_the_next_part() -> None:
    test = shown(STOPS[0], at="L2H3")
    test.button(key="next_stop").click()
    finished(test.run())
    assert PATH[1] in lead(test)
    assert (test.session_state["many"], test.session_state["at"]) == (STOPS[1].part, "L2H3")


def test_a_link_opens_a_default_part_even_if_another_was_selected() -> None:
    test = opened("many_heads", many="One product")
    test.session_state["shapes"] = "Bugs"
    test.query_params["shapes"] = "Walkthrough"
    finished(test.switch_page("shapes.py").run())
    assert PATH[3] in lead(test)
    assert test.session_state["shapes"] == "Walkthrough"


def test_the_title_of_other_pages_asks_nothing() -> None:
    assert "?" not in cast(str, lead(opened("head")))


def test_on_stage_the_title_line_is_the_title_and_the_question() -> None:
    assert "4 layers" in lead(shown(STOPS[0]))
    line = lead(shown(STOPS[0], stage="true"))
    assert PATH[0] in line
    assert "layers" not in line
