"""The project's reference text in two halves: selection texts and held-out evaluation texts.

An order of heads is fitted to the text that selected it, so it is evaluated on another text. The
text was written for this project; assets/reference.txt holds one paragraph per line.
"""

import re
from functools import lru_cache

from mha_viz.assets import ASSETS
from mha_viz.errors import TextError

REFERENCE = ASSETS / "reference.txt"
SENTENCE_END = re.compile(r"""(?<=[.!?]["')\]])\s+|(?<=[.!?])\s+""")


@lru_cache(maxsize=1)
def reference_texts() -> tuple[str, ...]:
    """The paragraphs of the reference text, in order. Raises TextError if the file is missing."""
    try:
        return paragraphs(REFERENCE.read_text(encoding="utf-8"))
    except OSError as error:
        raise TextError(
            f"The reference text {REFERENCE.name} is missing from {REFERENCE.parent.name}/. "
            "Restore the file, or give a text of your own."
        ) from error


def selection_texts() -> tuple[str, ...]:
    """The first, third, fifth … paragraph of the reference text, which select heads."""
    return reference_texts()[0::2]


def evaluation_texts() -> tuple[str, ...]:
    """The second, fourth, sixth … paragraph of the reference text, which evaluate the selection."""
    return reference_texts()[1::2]


def paragraphs(text: str) -> tuple[str, ...]:
    """The parts between blank lines, stripped. Raises TextError for an empty text."""
    parts = tuple(part.strip() for part in re.split(r"\n\s*\n", text) if part.strip())
    if not parts:
        raise TextError("The text is empty. Give a few paragraphs, with blank lines between them.")
    return parts


def split_text(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(selection texts, evaluation texts): every other paragraph, or the halves of a single one.

    A single paragraph is split after the sentence that ends nearest to its middle, or between two
    words if it has one sentence. Raises TextError for an empty text and for a single word.
    """
    parts = paragraphs(text)
    if len(parts) == 1:
        parts = _halves(parts[0])
    return parts[0::2], parts[1::2]


def _halves(text: str) -> tuple[str, str]:
    gaps = list(SENTENCE_END.finditer(text)) or list(re.finditer(r"\s+", text))
    if not gaps:
        raise TextError(
            "The text is a single word. One part of a text selects heads, another part evaluates "
            "the selection: give at least two words, preferably two paragraphs."
        )
    middle = min(gaps, key=lambda gap: abs(gap.start() + gap.end() - len(text)))
    return text[: middle.start()], text[middle.end() :]
