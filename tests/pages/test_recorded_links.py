"""Links that were made before the app was rearranged: each still opens the view that it opened.

`tests/cases/links.json` holds what that version (7173f40) showed: numbers, and values in links.
`RENAMED` translates a label that was reworded since. Five records were made again when what they
show was mended: intervals of shares (12) and of tasks (16), magnitudes of effects over several
draws (17), the loss on repeated tokens (18) and the known models' windows (28). A sixth, of the
bugs (23), was made again when their page got the losses over a text; its patterns are the same. A
seventh, of memory (22), was when its figure showed the tape before the copy and the one after. The
walkthrough (20, 21) is played by a component now, so its drawing is no chart; its numbers are the
same, and before them (21) are the weights and the values that make z. A comparison (13, 14) shows
predictions after the figures that it showed, which are the same; on a stage (14) the patterns come
before the map. The race (24) has four lines, the list and the batch with either kernel. Counting
(26) is the Cost part now: a figure of FLOPs over T, and d_h in the table of sizes. Shared keys (27)
show a card for each G and the recovery; the loss for each G is the same. The cache (28) shows its
contents head by head first, and tiles (29) the bytes moved; the figures after them are the same.
Colours can be chosen only where they change a figure (2 and 30 asked for them elsewhere), and the
thumbnails of the grid (0, 1) are further apart, with names between them.
"""

import json
from functools import cache
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest
from support.script import ROOT, finished, opened, said
from support.views import differences, inputs, options, what_is_shown

from mha_viz.app.link import RENAMED
from mha_viz.app.pages.many_heads import a_list

RECORDS = json.loads((ROOT / "tests" / "cases" / "links.json").read_text(encoding="utf-8"))
PLACES = ("token", "key", "side", "window")  # of a link, without an input of that name
COLOURS = ("colour", "sink")  # inputs that only some parts have
RENAMES = [(key, old, new) for key, renamed in RENAMED.items() for old, new in renamed.items()]


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(a_list, "RACE", {"d_model": 96, "T": 16})  # as recorded


@cache
def opened_as_recorded(number: int) -> AppTest:
    """The page of a record, once no computation is running."""
    record = RECORDS[number]
    return finished(opened(record["page"], theme=record["theme"], **record["link"]))


def by_now(key: str, value: str | list[str]) -> str | list[str]:
    """The current name of a value in an old link."""
    names = RENAMED.get(key, {})
    return [names.get(v, v) for v in value] if isinstance(value, list) else names.get(value, value)


def same(held: str | list[str], asked: str | list[str]) -> bool:
    """Whether an input holds what the link asked for; 2 and 2.0 are one number."""
    try:
        return held == asked or float(held) == float(asked)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False


def named(record: dict[str, Any]) -> str:
    return " ".join([record["page"], *list(record["link"].values())[2:3]])


NUMBERS = pytest.mark.parametrize("number", range(len(RECORDS)), ids=map(str, range(len(RECORDS))))


def test_the_records_visit_every_page_and_use_every_kind_of_choice() -> None:
    assert len({record["page"] for record in RECORDS}) == 10
    for key in ("at", "token", "key", "side", "window", "colour", "sink", "stage", "text"):
        assert any(key in record["link"] for record in RECORDS), key
    for key in {key for record in RECORDS for key in record["options"]} - {"cut", "device"}:
        asked = any(key in record["link"] for record in RECORDS)
        assert asked or key in ("score_on", "train_on"), key


@NUMBERS
def test_a_recorded_link_fills_the_inputs(number: int) -> None:
    test = opened_as_recorded(number)
    assert not test.exception
    held = inputs(test)
    for key, asked in RECORDS[number]["link"].items():
        if key not in PLACES and not (key in COLOURS and key not in held):
            assert same(held[key], by_now(key, asked)), (key, held[key], asked, said(test))


@NUMBERS
def test_a_recorded_link_shows_what_it_showed(number: int) -> None:
    shown = json.loads(json.dumps(what_is_shown(opened_as_recorded(number))))
    assert differences(shown, RECORDS[number]["shown"]) == []


@NUMBERS
def test_each_recorded_option_exists_or_was_renamed(number: int) -> None:
    now = options(opened_as_recorded(number))
    for key, recorded in RECORDS[number]["options"].items():
        if key in COLOURS and key not in now:
            continue
        assert {by_now(key, option) for option in recorded} <= set(now[key]), key
        assert set(RENAMED.get(key, {}).values()) <= set(now[key]), key


def test_only_choices_of_a_page_have_other_names() -> None:
    assert RENAMED.keys() <= {key for record in RECORDS for key in record["options"]}


@pytest.mark.parametrize(("key", "old", "new"), RENAMES)
def test_an_old_name_in_a_link_opens_the_same_option(key: str, old: str, new: str) -> None:
    with_key = [record for record in RECORDS if key in record["options"]]
    record = with_key[0 if key in COLOURS else -1]
    several = isinstance(record["link"].get(key), list)
    link = {**record["link"], key: [old] if several else old}
    test = finished(opened(record["page"], **link))
    assert inputs(test)[key] == ([new] if several else new)
    assert "is not available" not in said(test)
