"""Plotly reads a little HTML, entities and TeX in every string: here is the way around."""

_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "&#36;"})


def literal(text: str) -> str:
    """The text so that Plotly shows each of its characters as it is."""
    return text.translate(_ESCAPES)
