"""The reference text and its halves, and how a user's text is split."""

from pathlib import Path

import pytest

from mha_viz.analysis import reference_texts
from mha_viz.analysis.reference_texts import paragraphs, split_text
from mha_viz.errors import TextError


def test_the_reference_text_is_split_into_two_halves_without_overlap():
    full, selection, evaluation = (
        reference_texts.reference_texts(),
        reference_texts.selection_texts(),
        reference_texts.evaluation_texts(),
    )
    assert len(full) == 24
    assert len(selection) == len(evaluation) == 12
    assert set(selection) | set(evaluation) == set(full)
    assert not set(selection) & set(evaluation)
    assert full[0] == selection[0]
    assert full[1] == evaluation[0]
    assert all("\n" not in text and text == text.strip() for text in full)
    assert sum(len(text.split()) for text in full) > 3000, "a few thousand words"
    assert reference_texts.reference_texts() is full, "read once"


def test_a_missing_reference_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(reference_texts, "REFERENCE", tmp_path / "reference.txt")
    reference_texts.reference_texts.cache_clear()
    with pytest.raises(
        TextError, match=r"reference\.txt is missing from .* give a text of your own"
    ):
        reference_texts.reference_texts()
    reference_texts.reference_texts.cache_clear()


@pytest.mark.parametrize("blank", ["\n\n", "\r\n\r\n", "\n  \t\n\n\n"])
def test_every_other_paragraph_measures(blank: str):
    text = blank.join(["", "One.", "Two\nlines.", "Three.", " Four. ", "Five.", ""])
    assert split_text(text) == (("One.", "Three.", "Five."), ("Two\nlines.", "Four."))


@pytest.mark.parametrize(
    ("text", "halves"),
    [
        ("One two three. Four five six. Seven.", ("One two three.", "Four five six. Seven.")),
        (
            'He said "Go!" Then he went away, far away.',
            ('He said "Go!"', "Then he went away, far away."),
        ),
        ("one two three four", ("one two", "three four")),
        ("a\nb", ("a", "b")),
        ("Whole. ", None),
        ("word", None),
        ("没有空格。", None),
    ],
)
def test_a_single_paragraph_is_halved(text: str, halves: tuple[str, str] | None):
    if halves is None:
        with pytest.raises(TextError, match=r"single word.* at least two words"):
            split_text(text)
    else:
        assert split_text(text) == ((halves[0],), (halves[1],))


@pytest.mark.parametrize("text", ["", " \n\n\t\n"])
def test_an_empty_text_is_rejected(text: str):
    for job in (paragraphs, split_text):
        with pytest.raises(TextError, match="The text is empty"):
            job(text)
