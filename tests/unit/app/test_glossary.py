"""The glossary: what it explains, and how words are found in the texts of a page."""

import re

import pytest

from mha_viz.app import glossary
from mha_viz.app.glossary import entries, help_for, terms_in


def names(text: str) -> list[str]:
    return [entry.name for entry in terms_in(text)]


def test_every_line_of_the_list_is_an_entry() -> None:
    lines = re.findall(r"^- ", glossary.FILE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert len(entries()) == len(lines) > 50


def test_no_two_entries_explain_one_word() -> None:
    forms = [form.lower() for entry in entries() for form in entry.forms]
    assert len(forms) == len(set(forms))


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry.name)
def test_an_entry_is_a_few_sentences_and_found_by_its_own_words(entry: glossary.Entry) -> None:
    sentences = re.split(r"(?<=[.!?)])\s+(?=[A-Z‖`(])", entry.text)
    assert 1 <= len(sentences) <= 3
    assert entry.text.endswith((".", ")"))
    assert len(entry.text) < 330
    for form in entry.forms:
        assert entry in terms_in(f"a {form} b"), form


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("what one token looks at; heads of a Layer", ["Token", "Attention head", "Layer"]),
        ("the logit lens and a logit", ["Logit lens", "Logit"]),
        ("a previous-token head", ["Previous-token head"]),
        ("key/value cache", ["Key/value cache"]),
        ("W_Q and $W_V$, but not W_X", ["W_Q, W_K, W_V"]),
        ("z, a zebra, Z", ["z"]),
        ("<b class='token'>d_h</b>", ["B, T, C, H, d_h"]),
        ("C &lt;b&gt; &amp; T", ["B, T, C, H, d_h"]),
        ("tokenizer, overhead, maskless", []),
        ("", []),
    ],
)  # fmt: skip
def test_only_full_words_match_and_the_longest_term_counts(text: str, expected: list[str]) -> None:
    assert names(text) == expected


def test_help_has_the_own_text_first_and_each_term_once() -> None:
    text = help_for("a token and a token of a head", "Type here")
    assert text is not None
    own, token, head = text.split("\n\n")
    assert own == "Type here"
    assert token.startswith("**Token**: ")
    assert head.startswith("**Attention head**: ")
    assert help_for("nothing here") is None
    assert help_for("nothing here", "Type here") == "Type here"
