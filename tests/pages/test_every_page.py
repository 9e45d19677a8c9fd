"""What every part of every page owes a visitor, whatever was typed and whatever the link says."""

import json
import re
from functools import cache
from urllib.parse import quote

import pytest
from streamlit.testing.v1 import AppTest
from support.script import ROOT, charts, finished, lines, opened, said, texts_with_help

from mha_viz.app import glossary, link

PARTS = {
    "attention": ("", [""]),
    "head": ("look", ["Why this weight", "Lines", "Values", "Sink"]),
    "next_token": ("expects", ["Every position", "Logit lens", "Generate"]),
    "heads": ("numbers_of", ["Head profiles", "Combined heads", "Several texts"]),
    "compare": ("against", ["another text", "another model", "ablated heads"]),
    "pruning": ("lab", ["Ablation", "Tasks", "Importance", "Curves", "Prune"]),
    "shapes": ("shapes", ["Walkthrough", "Memory layout", "Bugs"]),
    "many_heads": ("many", ["Implementations", "Output projection", "Parameters and FLOPs"]),
    "variants": ("variants", ["Grouped-query attention", "KV cache", "FlashAttention", "Masks"]),
    "training": ("", [""]),
}
EVERY = [(page, key, part) for page, (key, parts) in PARTS.items() for part in parts]
WITH_MORE_WORDS = [
    ("next_token", "expects", "Generate", ("go_on", "sample")),
    ("heads", "numbers_of", "Combined heads", ("aggregate", "rollout")),
]
CASES = json.loads((ROOT / "tests" / "cases" / "texts.json").read_text(encoding="utf-8"))
HOSTILE = "\n".join(
    case["text"] for case in CASES if case["text"] and case["name"] not in ("full context",)
).encode("utf-8", "ignore").decode("utf-8")  # fmt: skip
EXPLAINED = re.compile(r'<\w+ class="(?:lead|caption|score|facts)')
SMALL_WORK = {"off": "L3H4", "curve_texts": "1", "curve_every": "12", "orders": "gradient"}


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@cache
def with_hostile_text(page: str, key: str, part: str, *more: tuple[str, str]) -> AppTest:
    """A part of a page on a text that holds everything a text can hold, once its work is done."""
    text = HOSTILE[:700]
    assert len(quote(text)) < link.LONGEST
    link_of_part = {key: part} if key else {}
    return finished(opened(page, text=text, **link_of_part, **SMALL_WORK, **dict(more)))


@pytest.mark.parametrize(("page", "key", "part"), EVERY)
def test_no_text_breaks_a_page_and_every_chart_is_told_in_words(
    page: str, key: str, part: str
) -> None:
    test = with_hostile_text(page, key, part)
    assert not test.exception
    assert "Unexpected error" not in said(test)
    for figure, alt in charts(test):
        assert alt
        figure["layout"].pop("meta", None)  # tokens as they are, which nothing draws
        assert "<script" not in json.dumps(figure)


@pytest.mark.parametrize(("page", "key", "part"), EVERY)
def test_one_token_and_a_removed_text_are_met_with_words(page: str, key: str, part: str) -> None:
    more = {key: part} if key else {}
    for text in ("a", ""):
        test = opened(page, text=text, **more, **SMALL_WORK)
        assert not test.exception
        assert "Unexpected error" not in said(test)


@pytest.mark.parametrize(("page", "key", "part"), EVERY)
def test_each_technical_word_is_explained_where_it_stands(page: str, key: str, part: str) -> None:
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
         "size_H", "count_C", "cell_head", "budget", "least", "sink_as", "likeliest"],
        "<b>−1e9",
    )  # fmt: skip
    test = opened(page, **nonsense)
    assert not test.exception
    assert "Unexpected error" not in said(test)
