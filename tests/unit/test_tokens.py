"""The label of a token is safe and complete, and never shows another text than the one typed."""

import json
import unicodedata
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.models import byte_level_bpe
from tokenizers import AddedToken, Tokenizer

from mha_viz.errors import TextError
from mha_viz.model import Model
from mha_viz.tokens import (
    DOTTED_CIRCLE,
    MARK_NAMES,
    MARKS,
    Token,
    clean_text,
    explain,
    label,
    marks_used,
    piece_bytes,
    read_tokens,
    shorten,
    unknown_characters,
)

CASES = {
    case["name"]: " ".join(f"word {n}" for n in range(3000))
    if case["name"] == "full context"
    else case["text"]
    for case in json.loads((Path(__file__).parents[1] / "cases" / "texts.json").read_text())
}
CORPUS = [
    "The quick brown fox jumps over the lazy dog. naïve café déjà vu, e\u0301 a\u030a",
    "قال الولد للبنت hello قال الولد للبنت",
    "我喜欢吃苹果。我喜欢吃苹果。",
    "I 😀 you 👨\u200d👩\u200d👧 I 😀 you 👨\u200d👩\u200d👧 हिन्दी ภาษาไทย",
] * 5
BYTE_ALPHABET_SIGNS = "ĠĊĉÃ"


@pytest.fixture(scope="module")
def multilingual() -> Tokenizer:
    """A vocabulary in which whole Arabic, Chinese and emoji characters are single tokens."""
    tokenizer = byte_level_bpe(CORPUS, 700)
    tokens = {piece_bytes(piece).decode("utf-8", "replace") for piece in tokenizer.get_vocab()}
    assert {" 😀", " قال", " الولد"} <= tokens
    assert any("我" in token for token in tokens)
    return tokenizer


@pytest.fixture(scope="module", params=["bundled", "multilingual"])
def any_tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    found = request.getfixturevalue(request.param)
    return found.tokenizer if isinstance(found, Model) else found


def read(tokenizer: Tokenizer, text: str) -> tuple[Token, ...]:
    return read_tokens(tokenizer, tokenizer.encode(text, add_special_tokens=False).ids)


def hidden(c: str) -> bool:
    """A character that draws nothing, or that moves or mirrors its neighbours."""
    return unicodedata.category(c)[0] in "CZ" and c != " "


def check_everything(tokens: tuple[Token, ...], text: str) -> None:
    """The facts that hold for every text."""
    raw = text.encode()
    assert b"".join(token.bytes for token in tokens) == raw
    for token in tokens:
        assert token.label, "a token without a label would vanish"
        assert not any(map(hidden, token.label))
        assert ("\ufffd" in token.label) <= ("\ufffd" in text)
        assert token.kind in ("text", "bytes", "special")
        if token.kind != "special":
            check_marks(token.label)
    start = 0
    for position, token in enumerate(tokens):
        check_sharing(tokens, position, raw, start)
        start += len(token.bytes)


def check_marks(shown: str) -> None:
    """A combining mark stands on a dotted circle or on a letter, one at most."""
    for before, c in pairwise(f"\n{shown}"):
        if unicodedata.category(c)[0] == "M":
            assert before.isalpha() or before == DOTTED_CIRCLE, shown
            assert not unicodedata.combining(unicodedata.normalize("NFD", before)[-1]), shown


def check_sharing(tokens: tuple[Token, ...], position: int, raw: bytes, start: int) -> None:
    """`shared` and `span` are the characters that a token holds part of, and all their tokens."""
    token = tokens[position]
    if token.kind == "special":
        return
    end = start + len(token.bytes)
    cut = [edge for edge in (start, end) if edge < len(raw) and raw[edge] & 0xC0 == 0x80]
    assert bool(cut) == bool(token.shared), "an edge in the middle of a character is shared"
    assert (token.kind == "bytes") == bool(cut)
    if not token.shared:
        assert token.span == (0, 0)
        return
    first, last = token.span
    assert 0 <= first <= position < last <= len(tokens)
    assert last - first >= 2
    together = b"".join(t.bytes for t in tokens[first:last]).decode()
    assert all(c in together for c in token.shared)
    assert {(t.shared, t.span) for t in tokens[first:last]} == {(token.shared, token.span)}
    assert all(f"U+{ord(c):04X}" in explain(token) for c in token.shared)
    assert not any(map(hidden, explain(token)))
    assert f"{first} to {last - 1}" in explain(token)


# --- the list of texts ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in CASES if name != "empty"])
def test_every_sample_text(name: str, any_tokenizer: Tokenizer):
    text, replaced = clean_text(CASES[name])
    tokens = read(any_tokenizer, text)
    check_everything(tokens, text)
    shown = "".join(token.label for token in tokens)
    assert not any(sign in shown for sign in BYTE_ALPHABET_SIGNS)
    assert (replaced > 0) == (name == "lone surrogate")
    assert ("\ufffd" in shown) <= (name == "lone surrogate")


@pytest.mark.parametrize(
    "name", ["html tag", "link", "less than chain", "entity", "dollars", "markdown image", "quote"]
)
def test_what_a_page_would_interpret_is_shown_as_typed(name: str, any_tokenizer: Tokenizer):
    shown = "".join(token.label for token in read(any_tokenizer, CASES[name]))
    assert shown == CASES[name].replace(" ", "·")


def test_equal_tokens_stay_separate(any_tokenizer: Tokenizer):
    tokens = read(any_tokenizer, CASES["repeated word"])
    labels = [token.label for token in tokens]
    assert labels.count("·the") >= 3
    assert len(tokens) == len(labels)


def test_numbers_stay_text_in_order(any_tokenizer: Tokenizer):
    labels = [token.label for token in read(any_tokenizer, CASES["numbers"])]
    assert "".join(labels) == "1·2·10·2024-01-01·1e5"
    assert all(isinstance(shown, str) for shown in labels)


def test_a_text_without_spaces_loses_nothing(any_tokenizer: Tokenizer):
    tokens = read(any_tokenizer, "x" * 20_000)
    assert sum(len(token.bytes) for token in tokens) == 20_000
    assert all(len(shorten(token.label)) <= 16 for token in tokens)


def test_complete_characters_are_readable(multilingual: Tokenizer):
    labels = [token.label for token in read(multilingual, "قال الولد 我喜欢 😀")]
    assert "قال" in labels
    assert "·الولد" in labels
    assert "·😀" in labels
    assert "我" in "".join(labels)


def test_right_to_left_labels_keep_the_order_of_the_tokens(multilingual: Tokenizer):
    tokens = read(multilingual, "قال الولد للبنت hello")
    assert tokens[0].label == "قال"
    assert tokens[-1].label.endswith("o")


def test_a_character_cut_into_bytes_is_shown_in_hex_and_joined(bundled: Model):
    tokens = bundled.read(bundled.encode("a 😀!")[0])
    parts = [token for token in tokens if token.kind == "bytes"]
    assert len(parts) >= 2
    first = tokens.index(parts[0])
    assert all(part.shared == "😀" for part in parts)
    assert all(part.span == (first, first + len(parts)) for part in parts)
    hexed = " ".join(part.label for part in parts).replace("·", "")
    assert hexed.split() == ["F0", "9F", "98", "80"]
    assert explain(parts[0]) == (
        f"bytes of 😀 (U+1F600), which positions {first} to {first + len(parts) - 1} share"
    )


def test_a_token_may_end_one_character_and_begin_the_next(tokenizer: Tokenizer):
    """F0 9F 98 | 80 F0 | 9F 98 81: three tokens, two characters, one group."""
    pieces = [b"\xf0\x9f\x98", b"\x80\xf0", b"\x9f\x98\x81"]
    spelled = {piece_bytes(c)[0]: c for c in tokenizer.get_vocab() if len(piece_bytes(c)) == 1}
    fake = Fake(["".join(spelled[b] for b in piece) for piece in pieces])
    tokens = read_tokens(fake, [0, 1, 2])  # type: ignore[arg-type]
    assert [token.label for token in tokens] == ["F0 9F 98", "80 F0", "9F 98 81"]
    assert {(token.shared, token.span) for token in tokens} == {("😀😁", (0, 3))}
    assert explain(tokens[1]) == (
        "bytes of 😀 (U+1F600) and 😁 (U+1F601), which positions 0 to 2 share"
    )


class Fake:
    """A tokenizer that knows a few pieces."""

    def __init__(self, pieces: list[str]) -> None:
        self.pieces = pieces

    def get_added_tokens_decoder(self) -> dict[int, AddedToken]:
        return {}

    def id_to_token(self, i: int) -> str:
        return self.pieces[i]


# --- special tokens -------------------------------------------------------------------------------


def test_a_typed_special_token_is_one_token_and_explained(any_tokenizer: Tokenizer):
    tokens = read(any_tokenizer, CASES["special token typed"])
    special = [token for token in tokens if token.kind == "special"]
    assert [token.label for token in special] == ["<|endoftext|>"]
    assert explain(special[0]) == (
        f"a special token (id {special[0].id}), not text: it separates documents"
    )


def test_only_the_end_of_a_text_is_said_to_separate_documents():
    tokenizer = byte_level_bpe(CORPUS, 400)
    tokenizer.add_special_tokens(["<|user|>"])
    tokenizer.add_tokens([AddedToken("plainword", special=False)])
    tokens = read(tokenizer, "<|user|>plainword!")
    assert [token.kind for token in tokens] == ["special", "text", "text"]
    assert [token.label for token in tokens] == ["<|user|>", "plainword", "!"]
    assert explain(tokens[0]) == f"a special token (id {tokens[0].id}), not text"
    assert explain(tokens[1]) == ""


# --- any text -------------------------------------------------------------------------------------

ANY_TEXT = st.text(st.characters(exclude_categories=[]), min_size=1, max_size=40)
HARD = st.text("e\u0301\u0323a\u030aعَل\u064b\u200d\u202e\ufeff👩\ufe0f🇩กิ่\u3164éế·\\n\t\r\n \x00")


@settings(max_examples=200)
@given(text=ANY_TEXT | HARD)
@example(text="a\u0301\u0301\u0301")
@example(text="é\u0301")
@example(text="\ud83d\ude00")
@example(text="\ufffd")
def test_any_text_is_shown_completely_and_safely(
    text: str, bundled: Model, multilingual: Tokenizer
):
    clean, replaced = clean_text(text)
    assert replaced == clean.count("\ufffd") - text.count("\ufffd")
    clean.encode()  # no lone surrogate is left
    for tokenizer in (bundled.tokenizer, multilingual):
        check_everything(read(tokenizer, clean), clean)
    assert clean == text or any(0xD800 <= ord(c) <= 0xDFFF for c in text)


@settings(max_examples=200)
@given(piece=st.binary(min_size=1, max_size=12))
def test_any_bytes_have_a_label(piece: bytes):
    shown = label(piece)
    assert shown
    assert not any(map(hidden, shown))
    check_marks(shown)


@pytest.mark.parametrize(
    ("text", "clean", "replaced"),
    [
        ("bad \ud83d here", "bad \ufffd here", 1),
        ("\ude00\ud83d", "\ufffd\ufffd", 2),
        ("\ud83d\ude00", "😀", 0),
        ("\ufeffa", "\ufeffa", 0),
        ("�", "�", 0),
    ],
)
def test_lone_surrogates_are_replaced_and_counted(text: str, clean: str, replaced: int):
    assert clean_text(text) == (clean, replaced)


# --- marks ----------------------------------------------------------------------------------------


def test_marks_of_whitespace_are_distinct_and_named():
    assert set(MARKS) == set(" \n\t\r")
    assert len(set(MARKS.values())) == 4
    assert {mark: MARK_NAMES[mark] for mark in MARKS.values()} == MARK_NAMES
    assert [label(c.encode()) for c in " \n\t\r"] == ["·", "\\n", "\\t", "\\r"]
    assert label(b"  ") == "··"


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("\x00", "␀"),
        ("\x1b", "␛"),
        ("\x7f", "␡"),
        ("\u202e", "U+202E"),
        ("\u200d", "U+200D"),
        ("\u00a0", "U+00A0"),
        ("\ufeff", "U+FEFF"),
        ("\u2028", "U+2028"),
        ("\u3164", "U+3164"),
        ("\u0301", "◌\u0301"),
        ("e\u0301", "e\u0301"),
        ("e\u0301\u0323", "e\u0301◌\u0323"),
        ("é\u0323", "é◌\u0323"),
        ("1\u0301", "1◌\u0301"),
        ("<b>&amp;$x$", "<b>&amp;$x$"),
    ],
)
def test_invisible_characters_have_a_mark(typed: str, shown: str):
    assert label(typed.encode()) == shown


def test_labels_do_not_stack_high(any_tokenizer: Tokenizer):
    for token in read(any_tokenizer, "Z" + "\u0351\u036b\u0343\u036a" * 10):
        check_marks(token.label)


def test_the_legend_names_the_marks_that_are_used(bundled: Model):
    def legend(text: str) -> dict[str, str]:
        return marks_used(bundled.read(bundled.encode(text)[0]))

    assert legend("a") == {}
    assert legend("a b") == {"·": "space"}
    assert legend(CASES["newlines and tabs"]) == {
        "\\n": "newline",
        "\\t": "tab",
        "\\r": "carriage return",
    }
    assert "E2 80" in legend("😀")
    assert "·" not in legend("·"), "a dot that was typed is no space"
    assert legend("a<|endoftext|>b") == {}


def test_kinds_of_whitespace_are_distinguishable(bundled: Model):
    tokens = bundled.read(bundled.encode(CASES["spaces"])[0])
    assert "".join(token.label for token in tokens) == "a··b···c····d·"


@pytest.mark.parametrize(
    ("text", "limit", "short"),
    [
        ("short", 16, "short"),
        ("x" * 16, 16, "x" * 16),
        ("abcdefghijklmnopqrstuvwxyz", 16, "abcdefgh…tuvwxyz"),
        ("abcdef", 5, "ab…ef"),
        ("abcdef", 1, "…"),
    ],
)
def test_a_long_label_loses_its_middle(text: str, limit: int, short: str):
    assert shorten(text, limit) == short
    assert len(short) <= limit


# --- characters that a vocabulary lacks -----------------------------------------------------------


def test_a_full_alphabet_has_every_character(any_tokenizer: Tokenizer):
    assert unknown_characters(any_tokenizer, "".join(CASES.values()).replace("\ud83d", "")) == []


def test_a_character_that_would_vanish_is_rejected(bundled: Model):
    vocabulary = {"a": 0, "b": 1, "Ġ": 2, "<|endoftext|>": 3}
    state = json.loads(bundled.tokenizer.to_str())
    state["model"].update(vocab=vocabulary, merges=[], unk_token=None)
    state["added_tokens"] = []
    small = Tokenizer.from_str(json.dumps(state))
    assert small.encode("abc é").tokens == ["a", "b", "Ġ"], "c and é vanish"
    assert unknown_characters(small, "abc é") == ["c", "é"]
    model = Model(bundled.network, small, bundled.description)
    assert model.encode("ab a")[0] == [0, 1, 2, 0]
    with pytest.raises(TextError, match=r"no token for c \(2 such characters\), so its tokenizer"):
        model.encode("abc é")
