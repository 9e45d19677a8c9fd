"""Python code as HTML: coloured, with the shapes of its lines and one expression framed."""

import io
import keyword
import tokenize
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path

import streamlit as st

from mha_viz.app.browser import run_script
from mha_viz.app.messages import escaped

_HERE = Path(__file__).parent
_RULES = (_HERE / "code_view.css").read_text(encoding="utf-8")
_STAGE = ".code_view, .code_view .line { font-size: 0.7rem; line-height: 1rem; min-height: 1rem; }"
Span = tuple[int, int, int, int]  # first line and column, last line and column; lines from 1


def rules(*, stage: bool) -> None:
    """Writes the style rules of code and of what it gives into the page."""
    st.html(f"<style>{_RULES}{_STAGE * stage}</style>")


def code_view(
    text: str,
    shapes: Mapping[int, str],
    *,
    framed: Span | None = None,
    tinted: tuple[int, int] | None = None,
    selects: Mapping[int, str] | None = None,
    control: str = "",
) -> None:
    """Draws the code, line by line.

    `shapes` are shown at the right edge of lines, `framed` is the expression in a frame, and
    `tinted` the first and last line of its statement. A click on a line that `selects` names, or
    Enter on it, selects that option of the segmented control whose key is `control`.
    """
    rows = [
        _row(
            number, line, shapes.get(number, ""), framed, tinted, _option(number, selects, control)
        )
        for number, line in enumerate(_coloured(text, framed), start=1)
    ]
    if selects:
        run_script(_HERE / "code_lines.js")
    st.html(f'<div class="code_view" role="group" aria-label="Code">{"".join(rows)}</div>')


def _option(number: int, selects: Mapping[int, str] | None, control: str) -> str:
    """What makes a line a button, as attributes; "" if it selects nothing."""
    option = (selects or {}).get(number)
    if option is None:
        return ""
    data = f'data-control="{escaped(control)}" data-option="{escaped(option)}"'
    return f' {data} role="button" tabindex="0" title="Go to {escaped(option)}"'


def _row(
    number: int, line: tuple[int, str], shape: str, framed: Span | None,
    tinted: tuple[int, int] | None, option: str,
) -> str:  # fmt: skip
    indent, code = line
    at = tinted is not None and tinted[0] <= number <= tinted[1]
    current = ' aria-current="true"' if framed and framed[0] == number else ""
    return (
        f'<div class="line{" tinted" * at}"{current}{option}><i>{number}</i>'
        f'<span class="code" style="--in:{indent}">{code}</span>'
        f'<span class="shape">{escaped(shape)}</span></div>'
    )


def _coloured(text: str, framed: Span | None) -> Iterator[tuple[int, str]]:
    """The indentation and the HTML of each line."""
    marks = _marks(text)
    for number, line in enumerate(text.splitlines(), start=1):
        indent = len(line) - len(line.lstrip())
        start, end = _framed_in(number, line, framed)
        edges = {indent, len(line), start, end}
        edges |= {edge for span in marks.get(number, {}) for edge in span}
        inside = sorted(edge for edge in edges if indent <= edge <= len(line))
        html = ""
        for a, b in pairwise(inside):
            kind = marks.get(number, {}).get((a, b), "")
            piece = escaped(line[a:b])
            html += "<mark>" * (a == start < end)
            html += f"<{kind}>{piece}</{kind}>" if kind else piece
            html += "</mark>" * (b == end > start)
        yield indent, html


def _framed_in(number: int, line: str, framed: Span | None) -> tuple[int, int]:
    """The columns of a line that are in the frame; an empty range if none are."""
    if framed is None or not framed[0] <= number <= framed[2]:
        return len(line), len(line)
    start = framed[1] if number == framed[0] else len(line) - len(line.lstrip())
    return start, framed[3] if number == framed[2] else len(line)


def _marks(text: str) -> dict[int, dict[tuple[int, int], str]]:
    """For each line the columns that are coloured: `b` for keywords, `q` for strings."""
    found: dict[int, dict[tuple[int, int], str]] = {}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        word = token.type == tokenize.NAME and keyword.iskeyword(token.string)
        if word or token.type == tokenize.STRING:
            columns = token.start[1], token.end[1]
            found.setdefault(token.start[0], {})[columns] = "b" if word else "q"
    return found
