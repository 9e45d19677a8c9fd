"""What every part of every page must do, whatever the user types and whatever the link says."""

import inspect
import json
import re
from functools import cache
from urllib.parse import quote

import pytest
from streamlit.testing.v1 import AppTest
from support.parts import EVERY, PARTS, SMALL_WORK
from support.script import ROOT, charts, figures, finished, lines, opened, said, texts_with_help

from mha_viz.app import glossary, link
from mha_viz.app.pages.many_heads import a_list
from mha_viz.app.pages.shapes import bug_runs

WITH_MORE_WORDS = [
    ("next_token", "expects", "Generate", ("go_on", "sample")),
    ("heads", "numbers_of", "Combined heads", ("aggregate", "rollout")),
]
CASES = json.loads((ROOT / "tests" / "cases" / "texts.json").read_text(encoding="utf-8"))
HOSTILE = "\n".join(
    case["text"] for case in CASES if case["text"] and case["name"] not in ("full context",)
).encode("utf-8", "ignore").decode("utf-8")  # fmt: skip
EXPLAINED = re.compile(r'<\w+ class="(?:lead|caption|score|facts)')


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(a_list, "RACE", {"d_model": 96, "T": 16})  # quick; its words are the same
    monkeypatch.setattr(bug_runs, "MAX_TOKENS", 32)  # of the losses; figures draw the whole text


@cache
def with_hostile_text(page: str, key: str, part: str, *more: tuple[str, str]) -> AppTest:
    """A part of a page on a text that holds everything a text can hold, once its work is done."""
    text = HOSTILE[:700]
    assert len(quote(text)) < link.LONGEST
    link_of_part = {key: part} if key else {}
    return finished(opened(page, text=text, **link_of_part, **SMALL_WORK, **dict(more)))


@pytest.mark.parametrize(("page", "key", "part"), EVERY)
def test_no_text_breaks_a_page_and_every_chart_has_an_alt_text(
    page: str, key: str, part: str
) -> None:
    test = with_hostile_text(page, key, part)
    assert not test.exception
    assert "Unexpected error" not in said(test)
    for figure, alt in charts(test):
        assert alt
        assert "<script" not in json.dumps(figure)


@pytest.mark.parametrize(("page", "key", "part"), EVERY)
def test_one_token_and_a_removed_text_get_a_message(page: str, key: str, part: str) -> None:
    more = {key: part} if key else {}
    for text in ("a", ""):
        test = opened(page, text=text, **more, **SMALL_WORK)
        assert not test.exception
        assert "Unexpected error" not in said(test)


@pytest.mark.parametrize(("page", "key", "part"), EVERY)
def test_each_technical_word_is_explained_where_it_occurs(page: str, key: str, part: str) -> None:
    test = with_hostile_text(page, key, part)
    found = texts_with_help(test)
    assert len(found) > 5
    for text, help in found:
        missing = [term.name for term in glossary.terms_in(text) if term.text not in help]
        assert not missing, text
    for line in lines(test, of=("html",)):  # which has no help
        assert not EXPLAINED.match(line), line


def test_each_entry_of_the_glossary_explains_a_word_on_some_page() -> None:
    parts = [*EVERY, *WITH_MORE_WORDS]
    shown = [help for part in parts for _, help in texts_with_help(with_hostile_text(*part))]
    assert [entry.name for entry in glossary.entries() if entry.text not in " ".join(shown)] == []


@pytest.mark.parametrize("page", PARTS)
def test_a_link_full_of_nonsense_opens(page: str) -> None:
    keys = [key for key, _ in PARTS.values() if key]
    nonsense = dict.fromkeys(
        [*keys, "at", "step", "mistake", "layout", "measure", "score", "way", "off", "token",
         "window", "query", "key", "most", "threshold", "temperature", "new", "mask", "kv_heads",
         "size_H", "count_C", "count_G", "count_dtype", "cache_G", "cell_head", "budget", "least",
         "sink_as", "likeliest", "bugs_on", "form", "swap", "change_of", "outcome", "other_model"],
        "<b>−1e9",
    )  # fmt: skip
    test = opened(page, **nonsense)
    assert not test.exception
    assert "Unexpected error" not in said(test)


@pytest.mark.parametrize(("page", "key", "part"), EVERY)
def test_colours_can_be_chosen_exactly_where_they_change_a_figure(
    page: str, key: str, part: str
) -> None:
    link_of_part = ({key: part} if key else {}) | SMALL_WORK
    before = opened(page, **link_of_part)
    before.session_state["export"] = True
    finished(before.run())
    shown = {one.key for one in (*before.toggle, *before.button_group)}
    draws = [picture.recipe.draw for picture in before.session_state["pictures"].values()]
    for name, value, taken in (("colour", "weight", "scale"), ("sink", "true", "dim_sink")):
        if name not in shown:
            assert not [draw for draw in draws if taken in inspect.signature(draw).parameters]
            continue
        after = finished(opened(page, **link_of_part, **{name: value}))
        assert drawn(before) != drawn(after), name


def drawn(test: AppTest) -> list[str]:
    """Everything of a page that can have colours."""
    return [*map(json.dumps, figures(test)), *lines(test)]


def test_the_colours_are_kept_while_other_pages_are_open() -> None:
    test = opened("attention", colour="weight", sink="true")
    test.switch_page("head.py").run()
    assert "colour" not in {one.key for one in test.button_group}
    test.switch_page("attention.py").run()
    assert test.button_group(key="colour").value == "weight"
    assert test.toggle(key="sink").value
