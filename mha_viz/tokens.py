"""Token ids, and labels for them that are safe to show.

A byte-level BPE works on bytes, not characters, and writes them in its own alphabet (a space is
`Ġ`). Labels show text as typed, marks for whitespace, code points for other invisible characters,
and hex for a token that holds only part of a character.
"""

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mha_viz.spelling import ALPHABET, GPT2_SPELLING, Spelling
from mha_viz.spelling import piece_bytes as piece_bytes

if TYPE_CHECKING:
    from tokenizers import Tokenizer

MARKS = {" ": "·", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
MARK_NAMES = {"·": "space", "\\n": "newline", "\\t": "tab", "\\r": "carriage return"}
INVISIBLE_LETTERS = "\u115f\u1160\u2800\u3164\uffa0"  # Hangul fillers, an empty Braille cell
END_OF_TEXT = b"<|endoftext|>"
DOTTED_CIRCLE = "◌"  # the base of a combining mark without a letter
MAX_LABEL = 16  # characters


@dataclass(frozen=True, slots=True)
class Token:
    """One token: `label` is safe to show, `kind` is "text", "bytes", "special" or "unnamed".

    `bytes` is the text that it stands for, in UTF-8. An "unnamed" token is an id that the model
    has and its tokenizer does not; it stands for nothing.

    `shared` is the character that this token holds a part of, if any (or several, if it holds the
    end of one and the start of the next). `span` is the half-open range of the positions of all
    tokens that share it.
    """

    id: int
    bytes: bytes
    label: str
    kind: str
    shared: str = ""
    span: tuple[int, int] = (0, 0)


def clean_text(text: str) -> tuple[str, int]:
    """The text without lone surrogates, and how many were replaced by U+FFFD."""
    clean = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    lone = sum(0xD800 <= ord(c) <= 0xDFFF for c in text)
    pairs = sum(ord(c) > 0xFFFF for c in clean) - sum(ord(c) > 0xFFFF for c in text)
    return clean, lone - 2 * pairs


def read_tokens(
    tokenizer: "Tokenizer", ids: Sequence[int], spelling: Spelling = GPT2_SPELLING
) -> tuple[Token, ...]:
    """The token of each id. If pieces keep spaces, their bytes together are the text that was read.

    `spelling` is how the pieces spell text (default: as in a byte-level BPE).
    """
    added = tokenizer.get_added_tokens_decoder()
    pieces = [added[i].content if i in added else tokenizer.id_to_token(i) for i in ids]
    spelled = [
        piece.encode() if i in added and piece else spelling.spelled(piece or "")
        for i, piece in zip(ids, pieces, strict=True)
    ]
    shared = dict(_shared_characters(spelled))
    found = []
    for position, (i, piece) in enumerate(zip(ids, pieces, strict=True)):
        if not piece:
            found.append(Token(i, b"", f"id {i}", "unnamed"))
        elif i in added and added[i].special:
            found.append(Token(i, spelled[position], label(spelled[position]), "special"))
        else:
            # The label includes the marks of parts of words, since nothing else shows them.
            shown = piece.encode() if spelling.marks_words and i not in added else spelled[position]
            found.append(_token(i, spelled[position], label(shown), shared.get(position)))
    return tuple(found)


def unknown_characters(tokenizer: "Tokenizer", text: str) -> list[str]:
    """The characters that the tokenizer would drop, because it lacks one of their bytes."""
    missing = {c for c in ALPHABET if tokenizer.token_to_id(c) is None}
    return [c for c in dict.fromkeys(text) if not missing.isdisjoint(_spelled(c))]


def label(piece: bytes) -> str:
    """A label for these bytes: marks for whitespace, code points, hex for parts of characters."""
    out: list[str] = []
    for c in piece.decode("utf-8", "surrogateescape"):
        is_byte = "\udc80" <= c <= "\udcff"
        shown = f"{ord(c) - 0xDC00:02X}" if is_byte else _visible(c, out[-1] if out else "")
        if out and is_byte and _is_hex(out[-1]):
            shown = f" {shown}"
        out.append(shown)
    return "".join(out)


def shorten(text: str, limit: int = MAX_LABEL) -> str:
    """The text, with … in place of its middle if it is longer than `limit`."""
    if len(text) <= limit:
        return text
    return f"{text[: limit // 2]}…{text[len(text) - (limit - limit // 2 - 1) :]}"


def explain(token: Token) -> str:
    """An explanation of a label that is not plain text; "" for plain text."""
    if token.kind == "special":
        meaning = ": it separates documents" if token.bytes == END_OF_TEXT else ""
        return f"a special token (id {token.id}), not text{meaning}"
    if token.kind == "unnamed":
        return "an id that the model has, but for which its tokenizer has no token"
    if token.shared:
        names, (first, end) = " and ".join(map(_name, token.shared)), token.span
        return f"bytes of {names}, which positions {first} to {end - 1} share"
    return ""


def marks_used(tokens: Sequence[Token]) -> dict[str, str]:
    """The marks in these labels, with their meanings."""
    text = b"".join(t.bytes for t in tokens if t.kind != "special").decode("utf-8", "replace")
    used = {mark: MARK_NAMES[mark] for c, mark in MARKS.items() if c in text}
    if any(t.kind == "bytes" for t in tokens):
        used["E2 80"] = "bytes of a character that several tokens share"
    return used


_SPELLING = {b: c for c, b in ALPHABET.items()}


def _spelled(c: str) -> str:
    return "".join(_SPELLING[b] for b in c.encode())


def _token(i: int, piece: bytes, shown: str, sharing: tuple[str, tuple[int, int]] | None) -> Token:
    try:
        piece.decode("utf-8")
        kind = "text"
    except UnicodeDecodeError:
        kind = "bytes"
    return Token(i, piece, shown, kind, *(sharing or ("", (0, 0))))


def _shared_characters(
    pieces: Sequence[bytes],
) -> Iterator[tuple[int, tuple[str, tuple[int, int]]]]:
    """(position, (character split across tokens, range of the tokens that hold it))."""
    owner = [p for p, piece in enumerate(pieces) for _ in piece]
    start, chain, begin, end = 0, "", 0, 0
    for c in b"".join(pieces).decode("utf-8", "surrogateescape"):
        size = len(c.encode("utf-8", "surrogateescape"))
        first, last = owner[start], owner[start + size - 1]
        start += size
        if first == last:
            continue
        # A token that ends one character and begins the next joins their ranges.
        chain, begin = (chain + c, begin) if first < end else (c, first)
        end = last + 1
        for position in range(begin, end):
            yield position, (chain, (begin, end))


def _visible(c: str, before: str) -> str:
    if c in MARKS:
        return MARKS[c]
    code = ord(c)
    if code < 0x20 or code == 0x7F:
        return chr(0x2400 + code) if code < 0x20 else "\u2421"
    category = unicodedata.category(c)
    if category[0] in "CZ" or c in INVISIBLE_LETTERS:
        return f"U+{code:04X}"
    if category[0] == "M" and not _can_carry(before):
        return DOTTED_CIRCLE + c
    return c


def _can_carry(before: str) -> bool:
    """Whether this is a letter with no mark yet; a second mark would overlap the next label."""
    bare = len(before) == 1 and before.isalpha()
    return bare and not any(map(unicodedata.combining, unicodedata.normalize("NFD", before)))


def _is_hex(shown: str) -> bool:
    return len(shown.strip()) == 2 and all(c in "0123456789ABCDEF" for c in shown.strip())


def _name(c: str) -> str:
    code = f"U+{ord(c):04X}"
    return f"{c} ({code})" if unicodedata.category(c)[0] not in "CZM" else code
