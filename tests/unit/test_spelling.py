"""How pieces of each kind of tokenizer spell text."""

import pytest
from support.tokenizers import KINDS
from tokenizers import Tokenizer, decoders, models, normalizers

from mha_viz.spelling import GPT2_SPELLING, Spelling, spelling_of, text_read

METASPACE = Spelling(byte_level=False, blank="▁")
BYTE_FALLBACK = Spelling(byte_level=False, blank="▁", byte_pieces=True)
WORD_PIECE = Spelling(byte_level=False, continues="##")
WORD_END = Spelling(byte_level=False, ends="</w>")
WORD_LEVEL = Spelling(byte_level=False)


@pytest.mark.parametrize(
    ("kind", "spelling"),
    [
        ("byte_level", GPT2_SPELLING),
        ("lowercase", GPT2_SPELLING),
        ("word_piece", WORD_PIECE),
        ("word_level", WORD_LEVEL),
        ("unigram", METASPACE),
        ("metaspace_bpe", BYTE_FALLBACK),
        ("char_bpe", WORD_END),
    ],
)
def test_the_marks_of_a_tokenizer_are_found_in_its_steps(kind, spelling):
    assert spelling_of(KINDS[kind]()) == spelling


def test_a_mark_inside_of_a_sequence_is_found():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFC(), normalizers.Sequence([normalizers.Replace(" ", "_")])]
    )
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
    assert spelling_of(tokenizer) == Spelling(byte_level=False, blank="_", byte_pieces=True)


@pytest.mark.parametrize(
    ("spelling", "piece", "spelled"),
    [
        (GPT2_SPELLING, "Ġthe", b" the"),
        (GPT2_SPELLING, "Ã©", "é".encode()),
        (METASPACE, "▁the", b" the"),
        (METASPACE, "<0xC3>", b"<0xC3>"),
        (BYTE_FALLBACK, "<0xC3>", b"\xc3"),
        (WORD_PIECE, "##ing", b"ing"),
        (WORD_PIECE, "##", b"##"),
        (WORD_END, "the</w>", b"the"),
        (WORD_END, "</w>", b"</w>"),
        (WORD_LEVEL, "Ġ", "Ġ".encode()),
    ],
)
def test_what_a_piece_spells(spelling, piece, spelled):
    assert spelling.spelled(piece) == spelled


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_that_is_kept_is_read_back(kind):
    tokenizer = KINDS[kind]()
    text = "the dog sat on the mat"
    read = text_read(
        tokenizer, tokenizer.encode(text, add_special_tokens=False), spelling_of(tokenizer)
    )
    assert read.removeprefix(" ") == text
