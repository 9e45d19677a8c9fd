"""The components of the app, with a recorder in place of Streamlit.

The recorder keeps what the pages pass to Streamlit: the HTML, CSS and JavaScript of a component,
and the data of its last call.
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
    del isolate_styles  # here, no component shares a page with another
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
    from mha_viz.head import Head

logging.disable(logging.WARNING)  # Streamlit warns at every call that there is no page


def strip(T: int) -> Sent:
    token_strip(_view(T))
    return _sent("mha_viz_strip", FULL)


def several_lines(T: int) -> Sent:
    """As many heads and lines as the page draws."""
    heads = [Head(AT[0], head) for head in range(lines.MAX_HEADS)]
    settings = lines.Settings(lines.DIRECTIONS[0], 0.0, lines.MAX_PER_TOKEN)
    patterns = [traced(T).pattern(*head) for head in heads]
    qualifying = [dot_product.lines(each, most=lines.MAX_PER_TOKEN) for each in patterns]
    drawn = dot_product.strongest(qualifying, lines.MAX_LINES)
    lines._draw(_view(T), heads, drawn, settings)
    n = sum(map(len, drawn))
    at_rest = f", the {lines.MAX_AT_REST:,} strongest at rest" if n > lines.MAX_AT_REST else ""
    return _sent("mha_viz_lines", 620, f"{n:,} lines of {len(heads)} heads{at_rest}")


def heads_board(T: int) -> Sent:
    board(_view(T), [Head(*AT)])
    return _sent("mha_viz_board", HALF - 80)


def _sent(name: str, width: int, shown: str = "") -> Sent:
    return Sent(json.dumps(PARTS[name].data[0]), width, shown=shown, part=name)


def _view(T: int) -> View:
    """The text as a page has it, under a new name each time, so that no cache has it."""
    return View(
        source="",
        device=None,
        model=model(),
        trace=traced(T),
        trace_key=f"{T} {next(_names)}",
        layer=AT[0],
        head=AT[1],
        token=T - 1,
        window_edges=None,
        scale="sqrt",
        dim_sink=False,
        stage=False,
        theme=LIGHT,
    )


STRIP = Shown("Token strip", strip)
LINES = Shown("Lines", several_lines)
BOARD = Shown("Pruning board", heads_board)
