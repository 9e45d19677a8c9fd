"""The glossary: finds technical words in a text and explains them.

Entries come from assets/glossary.md, one per line:

    - **Attention head** (head): A part of a layer that …
"""

import html
import re
from dataclasses import dataclass
from functools import lru_cache

from mha_viz.assets import ASSETS

FILE = ASSETS / "glossary.md"
_ENTRY = re.compile(r"^- \*\*(?P<name>[^*]+)\*\*(?: \((?P<forms>[^)]*)\))?: (?P<text>.+)$", re.M)
_TAG = re.compile(r"<[^>]*>")
_SHORT = 3  # characters; anything shorter is a symbol, which is case-sensitive and has no plural


@dataclass(frozen=True, slots=True)
class Entry:
    """A term, the forms in which texts use it, and its explanation."""

    name: str
    forms: tuple[str, ...]
    text: str


@lru_cache(maxsize=1)
def entries() -> tuple[Entry, ...]:
    """All entries, in the order of the file."""
    found = _ENTRY.finditer(FILE.read_text(encoding="utf-8"))
    return tuple(Entry(m["name"], _forms(m["name"], m["forms"]), m["text"]) for m in found)


@lru_cache(maxsize=1024)
def terms_in(text: str) -> tuple[Entry, ...]:
    """The entries for the words of a text (HTML or Markdown), in the order of the text.

    A longer term hides the words in it: “logit lens” does not count as “logit”.
    """
    pattern, owners = _finder()
    plain = html.unescape(_TAG.sub(" ", text))
    found = (owners[match.lastindex - 1] for match in pattern.finditer(plain) if match.lastindex)
    return tuple(dict.fromkeys(found))


def help_for(text: str, more: str | None = None) -> str | None:
    """Markdown for Streamlit's `help`: `more`, then an explanation of each technical word.

    None if there is nothing to explain.
    """
    parts = [more] if more else []
    parts += [f"**{entry.name}**: {entry.text}" for entry in terms_in(text)]
    return "\n\n".join(parts) or None


def _forms(name: str, others: str | None) -> tuple[str, ...]:
    """The name and its other forms; without those, a name that lists several terms is split."""
    if others is None:
        return tuple(name.split(", "))
    return (name, *others.split(", "))


@lru_cache(maxsize=1)
def _finder() -> tuple[re.Pattern[str], list[Entry]]:
    """A pattern with one group per form, longest first, and the entry of each group."""
    pairs = [(form, entry) for entry in entries() for form in entry.forms]
    pairs.sort(key=lambda pair: -len(pair[0]))
    groups = "|".join(f"({_regex(form)})" for form, _ in pairs)
    return re.compile(rf"(?<!\w)(?:{groups})(?!\w)"), [entry for _, entry in pairs]


def _regex(form: str) -> str:
    exact = re.escape(form).replace(r"\ ", r"[\s-]").replace(r"\-", r"[\s-]")
    if len(form) < _SHORT:
        return exact
    return f"{exact}s?" if re.search("[A-Z]{2}|_", form) else f"(?i:{exact}s?)"
