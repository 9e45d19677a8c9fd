"""The reference text of the project, and its two halves: one chooses, the other measures.

What chooses an order of heads must not be what measures it: an order fits the text that chose it.
The text lies in assets/reference.txt, one paragraph a line, and was written for this project.
"""

import re
from functools import lru_cache

from mha_viz.assets import ASSETS
from mha_viz.errors import TextError

REFERENCE = ASSETS / "reference.txt"
SENTENCE_END = re.compile(r"""(?<=[.!?]["')\]])\s+|(?<=[.!?])\s+""")


@lru_cache(maxsize=1)
def reference_texts() -> tuple[str, ...]:
    """The paragraphs of the reference text, in their order. Raises TextError without the file."""
    try:
        return paragraphs(REFERENCE.read_text(encoding="utf-8"))
    except OSError as error:
        raise TextError(
            f"The reference text {REFERENCE.name} is not in {REFERENCE.parent.name}/. "
            "Fetch it again, or give a text of your own."
        ) from error


def selection_texts() -> tuple[str, ...]:
    """The first, third, fifth … paragraph of the reference text: they choose an order."""
    return reference_texts()[0::2]


def evaluation_texts() -> tuple[str, ...]:
    """The second, fourth, sixth … paragraph of the reference text: they measure what was chosen."""
    return reference_texts()[1::2]


def paragraphs(text: str) -> tuple[str, ...]:
    """The parts between blank lines, without blanks around them. Raises TextError for none."""
    found = tuple(part.strip() for part in re.split(r"\n\s*\n", text) if part.strip())
    if not found:
        raise TextError(
            "The text is empty. Give one of a few paragraphs, with blank lines between."
        )
    return found


def split_text(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What chooses, and what measures: every other paragraph, or the halves of a single one.

    A single paragraph is cut at the end of the sentence next to its middle, or else between two
    words. Raises TextError for an empty text, and for a single word, which has no halves.
    """
    parts = paragraphs(text)
    if len(parts) == 1:
        parts = _halves(parts[0])
    return parts[0::2], parts[1::2]


def _halves(text: str) -> tuple[str, str]:
    gaps = list(SENTENCE_END.finditer(text)) or list(re.finditer(r"\s+", text))
    if not gaps:
        raise TextError(
            "The text is a single word. One part of a text chooses which heads go, another "
            "measures what that costs: give at least two words, better two paragraphs."
        )
    middle = min(gaps, key=lambda gap: abs(gap.start() + gap.end() - len(text)))
    return text[: middle.start()], text[middle.end() :]
