"""Tokenizers of every kind: ids as AutoTokenizer gives them, labels to read, changes said."""

import json
import unicodedata
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support.checkpoints import check_equal, refused
from support.models import byte_level_bpe
from support.tokenizers import (
    AS_IT_IS,
    CORPUS,
    KINDS,
    byte_level,
    lowercase,
    metaspace_bpe,
    put,
    swallowing,
    unigram,
    word_level,
    word_piece,
)
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers.models.auto.tokenization_auto import AutoTokenizer

from mha_viz.checkpoints import load, save
from mha_viz.checkpoints.tokenizer import read_tokenizer
from mha_viz.errors import CheckpointError, TextError
from mha_viz.model import Model

TEXTS = [
    "the dog sat on the mat",
    "The Dog sat.",
    "  two  blanks \n and\ta line ",
    "a café in Zürich, 東京 😀",
    "singing dogs unknownword",
    "[CLS] the [SEP]",
]

CLASSES = [
    "", "GPT2Tokenizer", "PreTrainedTokenizerFast", "TokenizersBackend", "BertTokenizer",
    "LlamaTokenizer", "T5Tokenizer", "XLNetTokenizer", "RobertaTokenizer", "AlbertTokenizer",
    "CLIPTokenizer", "WhisperTokenizer", "Qwen2Tokenizer", "GPTNeoXTokenizer", "ByT5Tokenizer",
    "CamembertTokenizer", "UdopTokenizer", "NoSuchTokenizer",
]  # fmt: skip


def auto_ids(folder: Path, text: str, *, template: bool = False) -> list[int]:
    ids: list[int] = AutoTokenizer.from_pretrained(folder)(
        text, add_special_tokens=template
    ).input_ids
    return ids


def notes_of(model: Model) -> str:
    return "\n".join(model.description.notes)


@pytest.fixture
def folder(gpt2, checkpoint) -> Path:
    return checkpoint(gpt2(1, vocab_size=320), words=False)


@pytest.mark.parametrize("kind", KINDS)
def test_ids_are_those_of_auto_tokenizer(folder, kind):
    model = load(put(folder, KINDS[kind](), AS_IT_IS))
    for text in TEXTS:
        assert model.encode(text)[0] == auto_ids(folder, text), text


@pytest.mark.parametrize("kind", KINDS)
def test_labels_can_be_read(folder, kind):
    model = load(put(folder, KINDS[kind](), AS_IT_IS))
    for text in TEXTS:
        for token in model.trace(text).details:
            assert token.label
            assert not set("ĠĊÃ▁") & set(token.label), token
            assert not any(unicodedata.category(c)[0] in "CZ" for c in token.label)


@pytest.mark.parametrize(
    ("kind", "labels"),
    [
        ("byte_level", "the ·dog ·sat"),
        ("word_piece", "the dog sat"),
        ("word_level", "the dog sat"),
        ("unigram", "·the ·dog ·sat"),
        ("metaspace_bpe", "·the ·dog · s a t"),
        ("char_bpe", "the</w> dog</w> sat</w>"),
    ],
)
def test_the_labels_of_some_words(folder, kind, labels):
    shown = " ".join(load(put(folder, KINDS[kind](), AS_IT_IS)).trace("the dog sat").tokens)
    if kind == "unigram":  # it may split words otherwise
        assert shown.replace(" ", "") == labels.replace(" ", "")
    else:
        assert shown == labels


def test_a_part_of_a_word_and_a_byte_have_labels(folder):
    shown = load(put(folder, word_piece(), AS_IT_IS)).trace("songdog").tokens
    assert shown[0] == "song"
    assert all(label.startswith("##") for label in shown[1:])
    tokens = load(put(folder, metaspace_bpe(), AS_IT_IS)).trace("the é").details
    assert [t.label for t in tokens] == ["·the", "·", "C3", "A9"]
    assert tokens[-1].shared == "é"


@pytest.mark.parametrize(
    ("kind", "typed", "read"),
    [
        ("byte_level", "The Dog sat.", ""),
        ("lowercase", "The Dog sat.", "the dog sat."),
        ("lowercase", "the dog sat.", ""),
        ("lowercase", "café", "cafe"),
        ("word_piece", "the dog sat.", ""),
        ("word_piece", "The  dog", "the dog"),
        ("word_piece", "the 東", "the [UNK]"),
        ("word_level", "the dog, the mat", ""),
        ("word_level", "the DOG", "the [UNK]"),
        ("unigram", "the dog", " the dog"),
        ("metaspace_bpe", "the é", " the é"),
        ("char_bpe", "the dog", ""),
        ("char_bpe", "The dog", "the dog"),
    ],
)
def test_what_was_read_is_reported_where_it_is_not_what_was_typed(folder, kind, typed, read):
    trace = load(put(folder, KINDS[kind](), AS_IT_IS)).trace(typed)
    assert trace.text == typed
    assert trace.read_as == read


def test_bytes_are_the_text_that_was_read_if_spaces_are_kept(folder):
    for kind in ("byte_level", "lowercase", "unigram", "metaspace_bpe"):
        model = load(put(folder, KINDS[kind](), AS_IT_IS))
        for text in ("The Dog sat.", "  a café\n"):
            trace = model.trace(text)
            assert b"".join(trace.token_bytes).decode() == (trace.read_as or text), kind


def test_a_token_that_absorbs_spaces_is_reported(folder):
    tokenizer = byte_level()
    tokenizer.add_tokens([swallowing()])
    model = load(put(folder, tokenizer))
    assert model.encode("the <mask> dog")[0] == auto_ids(folder, "the <mask> dog")
    assert model.trace("the <mask> dog").read_as == "the<mask>dog"
    assert model.trace("the<mask>dog").read_as == ""


def test_a_space_added_before_the_text_is_reported(folder):
    tokenizer = byte_level()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    trace = load(put(folder, tokenizer, AS_IT_IS)).trace("the dog")
    assert trace.read_as == " the dog"
    assert trace.tokens == ("·the", "·dog")


# --- which file is read, and how ------------------------------------------------------------------


def test_a_tokenizer_json_is_read_as_it_is_with_a_note(folder):
    """AutoTokenizer of transformers 5 would drop the normalizer of a GPT-2's tokenizer."""
    for settings in (None, {"tokenizer_class": "GPT2Tokenizer"}):
        model = load(put(folder, lowercase(), settings))
        assert model.trace("The Dog").read_as == "the dog"
        assert auto_ids(folder, "The Dog") != auto_ids(folder, "the dog")
        assert "would leave out" in notes_of(model)
        assert "a normalizer (Sequence)" in notes_of(model)
    assert "leave out" not in notes_of(load(put(folder, lowercase(), AS_IT_IS)))
    assert "leave out" not in notes_of(load(put(folder, byte_level())))


@pytest.mark.parametrize("kind", [word_level, word_piece, unigram, metaspace_bpe])
def test_another_kind_without_a_class_is_read_as_it_is(folder, kind):
    tokenizer = kind()
    model = load(put(folder, tokenizer))
    for text in TEXTS:
        assert model.encode(text)[0] == tokenizer.encode(text, add_special_tokens=False).ids
    assert "would leave out" in notes_of(model)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CLASSES)
def test_any_class_with_any_kind_gives_the_ids_of_auto_tokenizer_or_says_so(folder, kind, name):
    put(folder, KINDS[kind](), {"tokenizer_class": name} if name else None)
    try:
        tokenizer, notes = read_tokenizer(folder, "a model")
    except CheckpointError:
        return
    tokenizer.no_truncation()
    for text in TEXTS:
        ids = expected = None  # where a piece that is missing makes both fail
        with suppress(Exception):
            ids = tokenizer.encode(text, add_special_tokens=False).ids
        with suppress(Exception):
            expected = auto_ids(folder, text)
        assert notes or ids == expected, text


def test_a_tokenizer_that_wants_more_than_text_is_rejected(folder):
    message = refused(put(folder, unigram(), {"tokenizer_class": "UdopTokenizer"}))
    assert "is a UdopTokenizer, which does not read plain text." in message


def vocab_txt(folder: Path, **settings: Any) -> Path:
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "dog", "sat", "##s", ".", "狗"]
    (folder / "vocab.txt").write_text("\n".join(pieces), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


def test_a_vocabulary_of_bert_is_read(folder):
    model = load(vocab_txt(folder, tokenizer_class="BertTokenizer", do_lower_case=True))
    text = "The dogs sat. 狗"
    assert model.encode(text)[0] == auto_ids(folder, text)
    trace = model.trace(text)
    assert trace.tokens == ("the", "dog", "##s", "sat", ".", "狗")
    assert trace.read_as == "the dogs sat. 狗"


def test_the_class_may_be_in_config_json(folder):
    vocab_txt(folder)
    raw = json.loads((folder / "config.json").read_text()) | {"tokenizer_class": "BertTokenizer"}
    (folder / "config.json").write_text(json.dumps(raw))
    assert load(folder).encode("the dogs")[0] == auto_ids(folder, "the dogs")


def test_a_vocabulary_txt_alone_is_read_as_berts_with_a_note(folder):
    model = load(vocab_txt(folder))
    assert model.trace("the dogs").tokens == ("the", "dog", "##s")
    assert "BERT" in notes_of(model)


def test_a_sentencepiece_model_that_cannot_be_read_is_named(folder):
    (folder / "spiece.model").write_bytes(b"not a model")
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "T5Tokenizer"}')
    assert "tokenizer" in refused(folder)


def test_a_byte_level_tokenizer_without_a_decoder_is_read(folder):
    state = json.loads(byte_level().to_str()) | {"decoder": None}
    (folder / "tokenizer.json").write_text(json.dumps(state))
    trace = load(folder).trace("the dog")
    assert trace.tokens == ("the", "·dog")
    assert trace.read_as == ""


def test_vocab_and_merges_with_the_settings_of_transformers(folder):
    byte_level().model.save(str(folder))
    for settings in ({}, {"add_prefix_space": True}, {"add_bos_token": True}):
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
        model = load(folder)
        for text in TEXTS[:3]:
            assert model.encode(text)[0] == auto_ids(folder, text)
            with_template = model.with_template()
            assert with_template.input_ids(text) == auto_ids(folder, text, template=True)


SIDE_FILES: list[dict[str, Any]] = [
    {"added_tokens.json": {"<new>": 300, "[PAD]": 301}},
    {"special_tokens_map.json": {"pad_token": "[PAD]", "additional_special_tokens": ["<new>"]}},
    {
        "special_tokens_map.json": {
            "bos_token": {"content": "<new>", "lstrip": True, "rstrip": True, "normalized": False}
        }
    },
    {
        "tokenizer_config.json": {
            "added_tokens_decoder": {
                "300": {"content": "<new>", "lstrip": True, "special": True},
                "301": {"content": "[PAD]", "rstrip": True, "special": False},
            }
        }
    },
    {"tokenizer_config.json": {"add_prefix_space": True, "tokenizer_class": "GPT2Tokenizer"}},
    {"tokenizer_config.json": {"bos_token": "<new>", "add_bos_token": True}},
    {
        "added_tokens.json": {"<new>": 300},
        "special_tokens_map.json": {"eos_token": "[PAD]"},
        "tokenizer_config.json": {"unk_token": "<new>"},
    },
]


@pytest.mark.parametrize("side", SIDE_FILES, ids=lambda side: " ".join(side))
@pytest.mark.parametrize("files", ["tokenizer.json", "vocab.json merges.txt"])
def test_side_files_are_read_as_transformers_reads_them(folder, side, files):
    if files == "tokenizer.json":
        put(folder, byte_level())
    else:
        byte_level().model.save(str(folder))
    for name, content in side.items():
        (folder / name).write_text(json.dumps(content))
    model = load(folder)
    for text in ("the <new> dog", "a<new>b [PAD] c", "the dog", "<|endoftext|>the"):
        assert model.encode(text)[0] == auto_ids(folder, text), text
        assert model.with_template().input_ids(text) == auto_ids(folder, text, template=True)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("tokenizer_config.json", "{"),
        ("tokenizer_config.json", "[]"),
        ("added_tokens.json", "{"),
        ("tokenizer_config.json", '{"added_tokens_decoder": {"x": 3}}'),
        ("tokenizer_config.json", '{"auto_map": {"AutoTokenizer": ["mine.Mine", null]}}'),
        ("tokenizer_config.json", '{"tokenizer_class": "NoSuchTokenizer"}'),
    ],
)
def test_a_damaged_side_file_gives_a_message_or_is_harmless(folder, name, content):
    put(folder, byte_level())
    (folder / name).write_text(content)
    try:
        ids = load(folder).encode("the dog")[0]
    except CheckpointError:
        assert "The tokenizer of" in refused(folder)
    else:
        assert ids == byte_level().encode("the dog").ids


# --- ids and tokens that do not belong together ---------------------------------------------------


def test_an_id_beyond_the_model_rejects_only_texts_that_use_it(gpt2, checkpoint):
    """An end of text with the id vocab_size, or a [PAD] that was added without resizing."""
    tokenizer = byte_level()
    tokenizer.add_special_tokens(["[PAD]"])
    theirs = gpt2(1, vocab_size=299)
    folder = put(checkpoint(theirs, words=False), tokenizer)
    model = load(folder)
    check_equal(model, theirs)
    assert "`<|endoftext|>`, `[PAD]`, with ids from 299" in notes_of(model)
    for text in ("the [PAD] dog", "<|endoftext|>"):
        with pytest.raises(TextError, match=r"has id (299|300) in the tokenizer of .* 0 to 298"):
            model.trace(text)


def test_an_id_without_a_token_has_a_label(gpt2, checkpoint):
    folder = put(checkpoint(gpt2(1, vocab_size=512), words=False), byte_level())
    model = load(folder)
    tokens = model.read(range(512))
    assert tokens[417].label == "id 417"
    assert tokens[417].kind == "unnamed"
    assert all(token.label for token in tokens)
    trace = model.trace_ids([5, 417, 300])
    assert trace.tokens[1:] == ("id 417", "id 300")
    assert b"".join(trace.token_bytes).decode() == trace.text


def test_a_word_that_a_tokenizer_cannot_read_gives_a_message(folder):
    tokenizer = Tokenizer(models.WordLevel({"the": 0, "dog": 1}))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    model = load(put(folder, tokenizer, AS_IT_IS))
    assert model.encode("the dog")[0] == [0, 1]
    with pytest.raises(TextError, match="cannot read this text"):
        model.encode("the cat")


def test_a_text_without_tokens_is_rejected(folder):
    tokenizer = byte_level()
    tokenizer.normalizer = normalizers.Strip()
    model = load(put(folder, tokenizer, AS_IT_IS))
    assert model.trace(" the ").read_as == "the"
    for text in ("  ", "\n"):
        with pytest.raises(TextError, match="finds no tokens in this text"):
            model.trace(text)


# --- what a template adds -------------------------------------------------------------------------


def starting() -> Tokenizer:
    tokenizer = byte_level()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<|endoftext|> $A", special_tokens=[("<|endoftext|>", 299)]
    )
    return tokenizer


@pytest.mark.parametrize(
    ("made", "before", "after"),
    [(starting, ["<|endoftext|>"], []), (word_piece, ["[CLS]"], ["[SEP]"]), (byte_level, [], [])],
)
def test_a_template_is_added_when_it_is_asked_for(folder, made, before, after):
    model = load(put(folder, made(), AS_IT_IS))
    text = "the dog"
    assert [t.label for t in model.template_tokens] == [*before, *after]
    plain, started = model.trace(text), model.with_template().trace(text)
    assert plain.token_ids == auto_ids(folder, text)
    assert started.token_ids == auto_ids(folder, text, template=True)
    assert list(started.tokens) == [*before, *plain.tokens, *after]
    assert (plain.template, started.template) == ((0, 0), (len(before), len(after)))
    assert started.read_as == plain.read_as


def test_a_long_text_is_cut_between_the_tokens_of_the_template(folder):
    model = load(put(folder, word_piece(), AS_IT_IS)).with_template()
    text = " ".join(["the", "dog"] * 50)
    ids = model.encode(text)[0]
    for cut, kept in (("end", ids[:62]), ("start", ids[-62:])):
        trace = model.trace(text, cut=cut)
        assert trace.token_ids == [1, *kept, 2]
        assert trace.left_out == len(ids) - 62


def test_words_are_looked_up_without_the_template(folder):
    model = load(put(folder, starting(), AS_IT_IS)).with_template()
    assert model.single_token(" dog") == model.with_template(False).single_token(" dog")
    assert model.encode("the")[0] == byte_level().encode("the").ids


# --- there and back -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_tokenizer_is_read_back_by_both(folder, tmp_path, kind):
    model = load(put(folder, KINDS[kind](), AS_IT_IS))
    save(model, tmp_path / "saved")
    again = load(tmp_path / "saved")
    assert "leave out" not in notes_of(again)
    for text in TEXTS:
        assert again.encode(text) == model.encode(text)
        assert auto_ids(tmp_path / "saved", text) == model.encode(text)[0]


def test_a_tokenizer_with_dropout_splits_words_the_same_way_every_time(folder):
    tokenizer = byte_level_bpe(CORPUS, 300)
    model = tokenizer.model
    model.dropout = 0.9
    tokenizer.model = model
    loaded = load(put(folder, tokenizer, AS_IT_IS))
    assert "dropout" in notes_of(loaded)
    assert {tuple(loaded.encode("the dog sat on the mat")[0]) for _ in range(20)} == {
        tuple(byte_level().encode("the dog sat on the mat").ids)
    }


def test_a_special_token_of_any_kind_is_marked(folder):
    tokenizer = word_level()
    tokenizer.add_tokens([AddedToken("<x>", special=True)])
    kinds = {t.label: t.kind for t in load(put(folder, tokenizer)).trace("the <x> dog").details}
    assert kinds == {"the": "text", "<x>": "special", "dog": "text"}
