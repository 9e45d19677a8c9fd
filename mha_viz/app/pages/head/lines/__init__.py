"""The Lines tab: what several heads look at, as lines between two rows of tokens."""

import base64
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st

from mha_viz.analysis import dot_product
from mha_viz.analysis.dot_product import Lines
from mha_viz.app import link
from mha_viz.app.browser import component_code
from mha_viz.app.messages import escaped, notice
from mha_viz.app.pages.head.lines.settings import Settings, choose_heads, choose_settings
from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.chart import export_only
from mha_viz.app.widgets.download_buttons import download_table
from mha_viz.app.widgets.origins import origin_of_page
from mha_viz.app.widgets.recipes import recipe
from mha_viz.app.widgets.tables import table
from mha_viz.app.work import models
from mha_viz.export import Drawn, Given, rows_data
from mha_viz.figures.head_view import head_view
from mha_viz.figures.theme import THEMES, TextSizes, Theme
from mha_viz.head import Head
from mha_viz.trace import Array, Trace

_HERE = Path(__file__).parent
_lines = st.components.v2.component(
    "mha_viz_lines",
    html=(
        '<div class="lines">\n<div class="legend" role="group" aria-label="Heads"></div>\n'
        '<div class="stage" role="application" tabindex="0">'
        "<canvas></canvas><canvas></canvas><canvas></canvas></div>\n"
        '<div class="sentence" aria-live="polite"></div>\n'
        '<div class="save"><button data-format="png">PNG</button>'
        '<button data-format="svg">SVG</button></div>\n</div>'
    ),
    css=(_HERE / "lines.css").read_text(encoding="utf-8"),
    js=component_code(_HERE / "lines.js"),
)
MAX_LINES = 20_000  # of all heads
LINES = (
    "dot_product.strongest([dot_product.lines(mean_pattern(trace, heads), most=most, "
    "threshold=threshold, first_key=first_key) for heads in groups], MAX_LINES)"
)
MAX_AT_REST = 3_000  # drawn while no token is highlighted; more would be slow and unreadable
N_LISTED = 40  # lines in the table
STEPS = 64_000  # from a weight of 0 to 1, as in head_lines.js: multiples of 0.0005 begin a step
N_READ_OUT = 3  # lines in the alt text
HEADER = ["head", "from", "from token", "to", "to token", "weight"]
Row = tuple[str, int, str, int, str, float]  # in the order of HEADER


def show(view: View) -> None:
    """The settings, the lines, and the strongest of them as a table."""
    groups = choose_heads(view)
    settings = choose_settings()
    qualifying = [_lines_of(view, heads, settings) for heads in groups]
    lines = dot_product.strongest(qualifying, MAX_LINES)
    _explain(view, lines, settings, n_qualifying=sum(map(len, qualifying)))
    if settings.is_vertical:
        left, right = st.columns([3, 2], gap="medium")
    else:
        left, right = st.container(), st.container()
    rows = _rows(view.trace.tokens, groups, lines)
    with left:
        _draw(view, groups, lines, settings)
    with right:
        _table(rows)
    export_only(
        recipe(
            view,
            _draw_lines,
            groups=groups,
            most=settings.most_per_token,
            threshold=settings.threshold,
            first_key=settings.first_key,
            upright=settings.is_vertical,
            lines=Given(lines, LINES),
        ),
        key="lines",
        name="Lines between tokens",
        alt=f"Lines of {', '.join(map(_name, groups))}: {_read_out(rows)}.",
    )


def mean_pattern(trace: Trace, heads: list[Head]) -> Array:
    """`[T, T]`: the mean of the patterns of these heads; for one head, its pattern."""
    mean: Array = np.mean([trace.pattern(*head) for head in heads], axis=0, dtype=np.float32)
    return mean


def _name(heads: list[Head]) -> str:
    return heads[0].label if len(heads) == 1 else f"mean of {len(heads)} heads"


def _draw_lines(
    trace: Trace,
    groups: list[list[Head]],
    lines: list[Lines],
    upright: bool,
    theme: Theme,
    sizes: TextSizes,
) -> Drawn:
    named = list(zip(map(_name, groups), lines, strict=True))
    figure = head_view(named, trace.tokens, theme, upright=upright, sizes=sizes)
    rows = _rows(trace.tokens, groups, lines)
    data = rows_data(["head", "from", "from token", "to", "to token", "weight"], rows)
    return figure, data


def _lines_of(view: View, heads: list[Head], settings: Settings) -> Lines:
    most, threshold, first_key = settings.most_per_token, settings.threshold, settings.first_key
    return _cached_lines(view.trace_key, tuple(heads), most, threshold, first_key, _view=view)


@st.cache_resource(max_entries=64, show_spinner=False)
def _cached_lines(
    trace_key: str,
    heads: tuple[Head, ...],
    most: int,
    threshold: float,
    first_key: int,
    *,
    _view: View,
) -> Lines:
    if len(heads) == 1:
        pattern = models.pattern(trace_key, *heads[0], _view.trace)
    else:
        pattern = mean_pattern(_view.trace, list(heads))
    return dot_product.lines(pattern, most=most, threshold=threshold, first_key=first_key)


def _explain(view: View, lines: list[Lines], settings: Settings, *, n_qualifying: int) -> None:
    """What the lines show, and which of the qualifying weights are drawn."""
    first = f" None lead to the first token, {escaped(view.trace.tokens[0])}."
    n, threshold = sum(map(len, lines)), settings.threshold
    sides = ("left", "right") if settings.is_vertical else ("upper", "lower")
    at_rest = (
        f", of which only the {MAX_AT_REST:,} strongest are drawn until you highlight a token"
        if n > MAX_AT_REST
        else ""
    )
    caption(
        "Lines",
        f"The {sides[0]} token looks at the {sides[1]} one. Each line is a weight of at least "
        f"{threshold:.2f}; up to {settings.most_per_token} lines per token and head. Larger "
        "weights have stronger lines (√ scale); colour shows the head. "
        f"{n:,} line{'s' * (n != 1)}{at_rest}.{first * settings.without_sink}",
    )
    if n < n_qualifying:
        least = min(float(of_head.weights[-1]) for of_head in lines if len(of_head))
        notice(
            f"{n_qualifying:,} weights qualify. Showing the {n:,} largest, down to {least:.2f}. "
            "Raise the threshold or lower the lines per token to see all that qualify."
        )
    if not n:
        explained.note(f"No weight reaches {threshold:.2f}. Lower the threshold.")


def _draw(view: View, groups: list[list[Head]], lines: list[Lines], settings: Settings) -> None:
    at_rest = dot_product.strongest(lines, MAX_AT_REST)
    _lines(
        key="lines",
        data={
            "tokens": list(view.trace.tokens),
            "trace_key": view.trace_key,
            "heads": [
                {"name": _name(heads), "lines": pack(of_heads), "at_rest": len(shown)}
                for heads, of_heads, shown in zip(groups, lines, at_rest, strict=True)
            ],
            "direction": settings.direction,
            "pinned": _pinned(view),
            "stage": view.stage,
            "palettes": {name: asdict(theme) for name, theme in THEMES.items()},
            "ack": st.session_state.get("lines_seq", 0),
            "origin": json.dumps(origin_of_page()),
        },
        on_pin_change=_on_pin,
    )


def pack(lines: Lines) -> str:
    """All queries, then all keys, then all weights in STEPS, as base64 of 16-bit numbers."""
    numbers = np.concatenate([lines.queries, lines.keys, lines.weights.astype(np.float64) * STEPS])
    return base64.b64encode(numbers.astype("<u2").tobytes()).decode("ascii")


def _pinned(view: View) -> dict[str, Any] | None:
    """The token in the link and its side, highlighted unless the user points at another token."""
    if st.session_state.get("token") is None:
        return None
    return {"at": view.token, "side": st.session_state.get("side") or "query"}


def _on_pin() -> None:
    state = st.session_state
    pin: dict[str, Any] | None = state["lines"].get("pin")
    if not isinstance(pin, dict) or pin.get("trace_key") != state.get("trace_key"):
        return
    link.acknowledge("lines", pin)
    pinned = pin.get("pinned")
    state["token"] = int(pinned["at"]) if isinstance(pinned, dict) else None
    is_key = isinstance(pinned, dict) and pinned.get("side") == "key"
    state["side"] = "key" if is_key else None


def _rows(tokens: Sequence[str], groups: list[list[Head]], lines: list[Lines]) -> list[Row]:
    """A row for each line, the strongest first."""
    rows = [
        (_name(heads), int(i), tokens[i], int(j), tokens[j], round(float(weight), 6))
        for heads, of_head in zip(groups, lines, strict=True)
        for i, j, weight in zip(of_head.queries, of_head.keys, of_head.weights, strict=True)
    ]
    return sorted(rows, key=lambda row: -row[-1])


def _without_token_0(rows: list[Row]) -> list[Row]:
    """The rows of the tokens that can look at more than themselves."""
    return [row for row in rows if row[1]]


def _read_out(rows: list[Row]) -> str:
    strongest = _without_token_0(rows)[:N_READ_OUT]
    lines = [f"{a} ({i}) looks at {b} ({j}) {weight:.2f}" for _, i, a, j, b, weight in strongest]
    return ", ".join(lines) or "none except from token 0"


def _table(rows: list[Row]) -> None:
    """The strongest lines as a table, and all of them as a file."""
    listed = _without_token_0(rows)[:N_LISTED]
    if listed:
        n = len(listed)
        caption(
            "Strongest lines",
            f"{n} line{'s' * (n != 1)}, largest weight first, without token 0, which can only look "
            "at itself.",
        )
        table(HEADER, listed, height=min(430, 38 + 35 * n))
    download_table("lines.csv", HEADER, rows, label="Download lines (CSV)")
