"""How a tokenizer's pieces spell text: as bytes, or with marks for spaces and for parts of words.

byte-level BPE     each character of a piece stands for a byte: `Ġthe` is " the"
Metaspace          `▁` stands for a space: `▁the` is " the" (SentencePiece: Unigram and BPE)
WordPiece          `##` continues a word: `play` `##ing`; spaces are not kept (BERT)
end of a word      `</w>` ends a word: `the</w>` (BPE of GPT-1)
WordLevel          a piece is a word; spaces are not kept
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

_BYTE_PIECE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_INSIDE = ("pretokenizers", "decoders", "normalizers")  # where a Sequence keeps its steps


@dataclass(frozen=True, slots=True)
class Spelling:
    """The marks of one tokenizer; "" if it has no such mark. The default is GPT-2's."""

    byte_level: bool = True
    blank: str = ""
    continues: str = ""
    ends: str = ""
    byte_pieces: bool = False  # <0x0A> is the byte 10

    @property
    def keeps_blanks(self) -> bool:
        """Whether the pieces of a text include its spaces, so that, joined, they are the text."""
        return self.byte_level or bool(self.blank)

    @property
    def marks_words(self) -> bool:
        """Whether pieces have marks that are not text, only signs that a word continues or ends."""
        return bool(self.continues or self.ends)

    def spelled(self, piece: str) -> bytes:
        """The bytes of the text that a piece stands for, in UTF-8; empty only for ""."""
        if self.byte_level:
            return piece_bytes(piece)
        if self.byte_pieces and (byte := _BYTE_PIECE.fullmatch(piece)):
            return bytes([int(byte[1], 16)])
        bare = piece.removeprefix(self.continues).removesuffix(self.ends) or piece
        return (bare.replace(self.blank, " ") if self.blank else bare).encode("utf-8", "replace")


def piece_bytes(piece: str) -> bytes:
    """The bytes that a byte-level BPE piece spells (Radford et al. 2019, section 2.2)."""
    return b"".join(
        bytes([ALPHABET[c]]) if c in ALPHABET else c.encode("utf-8", "replace") for c in piece
    )


def spelling_of(tokenizer: "Tokenizer") -> Spelling:
    """The marks of a tokenizer, from its steps."""
    steps = list(_steps(tokenizer))
    if any(step["type"] == "ByteLevel" for step in steps):
        return Spelling()
    model = tokenizer.model
    suffixes = [step["suffix"] for step in steps if step["type"] == "BPEDecoder"]
    return Spelling(
        byte_level=False,
        blank=next(filter(None, map(_blank, steps)), ""),
        continues=getattr(model, "continuing_subword_prefix", None) or "",
        ends=getattr(model, "end_of_word_suffix", None) or next(iter(suffixes), ""),
        byte_pieces=bool(getattr(model, "byte_fallback", False))
        or any(step["type"] == "ByteFallback" for step in steps),
    )


def text_read(tokenizer: "Tokenizer", encoding: "Encoding", spelling: Spelling) -> str:
    """The text that the pieces of an encoding spell.

    If pieces do not include spaces, there is one wherever the text has a gap between two tokens.
    """
    added = tokenizer.get_added_tokens_decoder()
    words = [
        added[i].content.encode()
        if i in added
        else spelling.spelled(tokenizer.id_to_token(i) or "")
        for i in encoding.ids
    ]
    if not spelling.keeps_blanks:
        gaps = [after[0] > before[1] for before, after in pairwise(encoding.offsets)]
        words[1:] = [
            b" " + word if gap else word for gap, word in zip(gaps, words[1:], strict=True)
        ]
    return b"".join(words).decode("utf-8", "replace")


def _steps(tokenizer: "Tokenizer") -> Iterator[dict[str, Any]]:
    """The normalizer, the pre-tokenizer and the decoder, step by step, as JSON objects."""
    waiting = [
        json.loads(part.__getstate__())
        for part in (tokenizer.pre_tokenizer, tokenizer.decoder, tokenizer.normalizer)
        if part is not None
    ]
    while waiting:
        step = waiting.pop(0)
        yield step
        waiting[:0] = [inner for key in _INSIDE for inner in step.get(key, [])]


def _blank(step: dict[str, Any]) -> str:
    """The character that stands for a space because of this step, or ""."""
    if step["type"] == "Metaspace":
        return str(step["replacement"])
    if step["type"] == "Replace":
        pattern, content = step["pattern"].get("String"), step["content"]
        found = content if pattern == " " else pattern if content == " " else None
        return found if found and found.strip() else ""
    return ""


def _byte_alphabet() -> dict[str, int]:
    """Printable bytes stand for themselves; the others are mapped to U+0100 and up, in order."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = (b for b in range(256) if b not in printable)
    return {chr(b): b for b in printable} | {chr(0x100 + n): b for n, b in enumerate(others)}


ALPHABET = _byte_alphabet()
GPT2_SPELLING = Spelling()
