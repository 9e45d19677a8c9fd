"""Text in figures: escapes, minus signs, widths, and formatted numbers."""

from collections.abc import Iterable
from unicodedata import east_asian_width

_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "&#36;"})


def escape(text: str) -> str:
    """The text with escapes for what Plotly would read as HTML, as an entity or as TeX."""
    return text.translate(_ESCAPES)


def with_minus(number: str) -> str:
    """A formatted number with minus signs in place of hyphens."""
    return number.replace("-", "−")


def text_width(texts: Iterable[str], size: float) -> float:
    """The width of the widest text in pixels, monospaced; wide East Asian letters take two columns.

    Plotly's own measuring would lay out the figure twice.
    """
    places = (sum(2 if east_asian_width(c) in "WF" else 1 for c in text) for text in texts)
    return 0.6 * size * max(places, default=4)  # a monospaced letter is 0.6 em wide


def format_bytes(n: float) -> str:
    """A byte count in readable form, with three digits: 36 KiB, 1.25 GiB."""
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if n >= size:
            value = n / size if n >= 1000 * size else float(f"{n / size:.3g}")
            return f"{value:,.0f} {unit}" if value >= 100 else f"{value:g} {unit}"
    return f"{n:,.0f} bytes"


def format_probability(p: float) -> str:
    """A probability with two digits, or "<0.01"."""
    return f"{p:.2f}" if p >= 0.005 else "<0.01"
