"""The components of the app, with a recorder in the place of Streamlit.

What the pages hand to Streamlit is kept: once a component's HTML, CSS and JavaScript, and with
every call its data.
"""

import itertools
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from unittest.mock import patch

from streamlit.components import v2

from bench.sent import AT, FULL, HALF, Sent, Shown, model, traced

PARTS: dict[str, "Part"] = {}
_names = itertools.count()


@dataclass(frozen=True, slots=True)
class Part:
    """The browser side of a component, and the data of its last call."""

    html: str
    css: str
    js: str
    data: list[object]


def _record(
    name: str, *, html: str = "", css: str = "", js: str = "", isolate_styles: bool = True
) -> Callable[..., None]:
    del isolate_styles  # here each has a page of its own
    part = PARTS[name] = Part(html, css, js, [])

    def call(*, data: object, **_: object) -> None:
        part.data[:] = [data]

    return call


with patch.object(v2, "component", _record):
    from mha_viz.analysis import dot_product
    from mha_viz.app.pages.head import lines
    from mha_viz.app.view import View
    from mha_viz.app.widgets.head_board import board
    from mha_viz.app.widgets.token_strip import token_strip
    from mha_viz.figures.theme import LIGHT

logging.disable(logging.WARNING)  # Streamlit would say at every call that there is no page


def strip(T: int) -> Sent:
    token_strip(_view(T))
    return _sent("mha_viz_strip", FULL)


def several_lines(T: int) -> Sent:
    """As many heads and lines as the page draws."""
    heads = [(AT[0], head) for head in range(lines.HEADS)]
    found = [dot_product.lines(traced(T).pattern(*head), most=lines.ROW) for head in heads]
    sent = dot_product.strongest(found, lines.SENT)
    lines._draw(_view(T), heads, sent, lines.DIRECTIONS[0])
    n = sum(map(len, sent))
    at_rest = f", the {lines.AT_REST:,} strongest at rest" if n > lines.AT_REST else ""
    return _sent("mha_viz_lines", 620, f"{n:,} lines of {len(heads)} heads{at_rest}")


def heads_board(T: int) -> Sent:
    board(_view(T), [AT])
    return _sent("mha_viz_board", HALF - 80)


def _sent(name: str, width: int, shown: str = "") -> Sent:
    return Sent(json.dumps(PARTS[name].data[0]), width, shown=shown, part=name)


def _view(T: int) -> View:
    """The text as a page has it; under a new name each time, so that no cache answers."""
    return View(
        source="", device=None, model=model(), trace=traced(T), trace_key=f"{T} {next(_names)}",
        layer=AT[0], head=AT[1], token=T - 1, window_edges=None, scale="sqrt", dim_sink=False,
        stage=False, theme=LIGHT,
    )  # fmt: skip


STRIP = Shown("Token strip", strip)
LINES = Shown("Lines", several_lines)
BOARD = Shown("Pruning board", heads_board)
