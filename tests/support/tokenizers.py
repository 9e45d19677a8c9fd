"""Small tokenizers of every kind, as people give them to a GPT-2, and folders that hold one."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tokenizers import (
    AddedToken,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

from support.models import byte_level_bpe

CORPUS = [
    "the dog sat on the other side of the mat, and the cat sang a song to the old town.",
    "the cat sat on the mat and the dog ran to the other side of a small old town, where many "
    "people sing",
]
SPECIAL = ["[UNK]", "[CLS]", "[SEP]", "[PAD]"]
VOCABULARY = 180
AS_IT_IS = {"tokenizer_class": "PreTrainedTokenizerFast"}  # AutoTokenizer reads tokenizer.json


def byte_level() -> Tokenizer:
    return byte_level_bpe(CORPUS, 300)


def lowercase() -> Tokenizer:
    """A byte-level BPE that lowers a text and takes its accents off."""
    tokenizer = byte_level()
    steps = [normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase()]
    tokenizer.normalizer = normalizers.Sequence(steps)
    return tokenizer


def word_piece() -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(
        vocab_size=VOCABULARY, special_tokens=SPECIAL, show_progress=False
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    return tokenizer


def word_level() -> Tokenizer:
    tokenizer = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.WordLevelTrainer(
        vocab_size=VOCABULARY, special_tokens=SPECIAL, show_progress=False
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def unigram() -> Tokenizer:
    """As SentencePiece makes one: NFKC, a mark for each blank, and one before the text."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=VOCABULARY, special_tokens=SPECIAL, unk_token="[UNK]", show_progress=False
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def metaspace_bpe() -> Tokenizer:
    """As Llama's first one: a BPE whose unknown characters become pieces such as <0xC3>."""
    pieces = ["<unk>", *(f"<0x{b:02X}>" for b in range(256)), "▁", *"thedogsa.,"]
    merges = [("t", "h"), ("th", "e"), ("▁", "the"), ("d", "o"), ("do", "g"), ("▁", "dog")]
    pieces += [a + b for a, b in merges]
    vocabulary = {piece: i for i, piece in enumerate(pieces)}
    tokenizer = Tokenizer(
        models.BPE(vocabulary, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    )
    steps = [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    tokenizer.normalizer = normalizers.Sequence(steps)
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    return tokenizer


def char_bpe() -> Tokenizer:
    """As GPT-1's: pieces of words, whose last carries </w>."""
    tokenizer = Tokenizer(models.BPE(unk_token="[UNK]", end_of_word_suffix="</w>"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.BPEDecoder(suffix="</w>")
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=SPECIAL,
        end_of_word_suffix="</w>",
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


KINDS: dict[str, Callable[[], Tokenizer]] = {
    made.__name__: made
    for made in (
        byte_level,
        lowercase,
        word_piece,
        word_level,
        unigram,
        metaspace_bpe,
        char_bpe,
    )
}


def put(folder: Path, tokenizer: Tokenizer, settings: dict[str, Any] | None = None) -> Path:
    """Writes tokenizer.json into the folder, and tokenizer_config.json if there are settings."""
    tokenizer.save(str(folder / "tokenizer.json"))
    if settings is not None:
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


def swallowing(token: str = "<mask>") -> AddedToken:
    """An added token that takes the blanks around it."""
    return AddedToken(token, lstrip=True, rstrip=True, normalized=False)
