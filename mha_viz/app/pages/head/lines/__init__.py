"""The Lines part: what several heads look at, as lines between two rows of tokens."""

import base64
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st

from mha_viz.analysis import dot_product
from mha_viz.analysis.dot_product import Lines
from mha_viz.app.browser import component_code
from mha_viz.app.messages import notice
from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.chart import export_only
from mha_viz.app.widgets.choices import check_link, segmented_control
from mha_viz.app.widgets.download_buttons import download_table
from mha_viz.app.widgets.tables import table
from mha_viz.app.work import models
from mha_viz.figures.head_view import head_view
from mha_viz.figures.theme import THEMES
from mha_viz.head import Head
from mha_viz.heads.patterns import kept_heads

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
HEADS = 8  # as many as there are colours that can be told apart
ROW = 8  # lines of a token and a head, at most
SENT = 20_000  # lines of all heads that can light up
AT_REST = 3_000  # of them, drawn while none is lit; more would be one grey area, and slow
LISTED = 40  # lines of the table
NAMED = 3  # lines of the sentence that tells the drawing
DIRECTIONS = ["vertical", "horizontal"]
HEADER = ["head", "from", "token from", "to", "token to", "weight"]


def show(view: View) -> None:
    """Switches, lines, and the strongest of them as a table."""
    heads = _heads(view)
    direction, threshold, most = _switches()
    found = [
        _of_head(view.trace_key, layer, head, most, threshold, _view=view) for layer, head in heads
    ]
    there = sum(map(len, found))
    sent = dot_product.strongest(found, SENT)
    n = sum(map(len, sent))
    caption(
        "Lines",
        f"{'left' if direction == 'vertical' else 'above'} looks from, "
        f"{'right' if direction == 'vertical' else 'below'} looks at. A line is one weight of at "
        f"least {threshold:.2f}, of each token and head the {most} largest: stronger for a larger "
        f"weight (√), in the colour of its head. {n:,} line{'s' * (n != 1)}"
        + (f"; the {AT_REST:,} strongest at rest, all of a token that is lit." if n > AT_REST
           else "."),
    )  # fmt: skip
    if n < there:
        notice(
            f"{there:,} weights qualify; the {n:,} largest are here, down to "
            f"{min(float(one.weights[-1]) for one in sent if len(one)):.2f}. A higher threshold "
            "or fewer lines a token leaves none out."
        )
    if not n:
        explained.note(f"No weight reaches {threshold:.2f}: lower the threshold.")
    if direction == DIRECTIONS[0]:
        left, right = st.columns([3, 2], gap="medium")
    else:
        left, right = st.container(), st.container()
    with left:
        _draw(view, heads, sent, direction)
    rows = _rows(view, heads, sent)
    with right:
        _table(rows)
    named = [(Head(layer, head).label, one) for (layer, head), one in zip(heads, sent, strict=True)]
    export_only(
        lambda: head_view(
            named, view.trace.tokens, view.theme, upright=direction == DIRECTIONS[0],
            sizes=view.sizes,
        ),
        key="lines", alt=f"Lines of {', '.join(name for name, _ in named)}: {_told(rows)}.",
        table=lambda: (HEADER, rows),
    )  # fmt: skip


def _heads(view: View) -> list[Head]:
    """The chosen head, and those beside it that the link carries."""
    trace = view.trace
    options = [Head(i, h).key for i in range(trace.n_layers) for h in kept_heads(trace, i)]
    state = st.session_state
    if gone := [name for name in state.get("beside") or [] if name not in options]:
        state["beside"] = [name for name in state["beside"] if name in options]
        notice(f"{view.about.name} has no {', '.join(gone[:5])}: left out of the lines.")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        beside = explained.multiselect(
            f"Heads beside {view.at.label}", options, key="beside",
            bind="query-params", max_selections=HEADS - 1, placeholder="of any layer, up to 7",
        )  # fmt: skip
        layer = _around(view)
        st.button(
            f"{'All' if len(layer) == len(kept_heads(trace, view.layer)) else len(layer)} heads of "
            f"layer {view.layer}",
            on_click=_beside, args=([Head(i, h).key for i, h in layer if h != view.head],),
            key="lines_layer",
        )  # fmt: skip
    check_link("beside", beside)
    named = dict.fromkeys([view.at.key, *beside])
    return [Head.parse(name) for name in named][:HEADS]


def _around(view: View) -> list[Head]:
    """The heads of the chosen one's layer, from it on where there are too many."""
    kept = kept_heads(view.trace, view.layer)
    if len(kept) > HEADS:
        at = kept.index(view.head)
        kept = (kept + kept)[at : at + HEADS]
    return [Head(view.layer, head) for head in kept]


def _beside(names: list[str]) -> None:
    st.session_state["beside"] = names


def _switches() -> tuple[str, float, int]:
    """Direction, threshold, and lines of a token."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        direction = segmented_control("Tokens", DIRECTIONS, DIRECTIONS[0], "direction")
        threshold = explained.slider(
            "Threshold", 0.0, 1.0, 0.05, 0.01, key="threshold", bind="query-params", width=220,
            help="Weights below it have no line",
        )  # fmt: skip
        most = explained.slider(
            "Lines of a token", 1, ROW, 4, key="most", bind="query-params", width=180,
            help="Of each head, the largest weights of each token that looks",
        )  # fmt: skip
    for name, value in {"threshold": threshold, "most": most}.items():
        check_link(name, str(value))
    return direction, float(threshold), int(most)


@st.cache_resource(max_entries=64, show_spinner=False)
def _of_head(
    trace_key: str, layer: int, head: int, most: int, threshold: float, *, _view: View
) -> Lines:
    pattern = models.pattern(trace_key, layer, head, _view.trace)
    return dot_product.lines(pattern, most=most, threshold=threshold)


def _draw(view: View, heads: list[Head], sent: list[Lines], direction: str) -> None:
    at_rest = dot_product.strongest(sent, AT_REST)
    _lines(
        key="lines",
        data={
            "tokens": list(view.trace.tokens),
            "trace_key": view.trace_key,
            "heads": [
                {"name": Head(layer, head).label, "lines": pack(one), "at_rest": len(few)}
                for (layer, head), one, few in zip(heads, sent, at_rest, strict=True)
            ],
            "direction": direction,
            "pinned": _pinned(view),
            "stage": view.stage,
            "palettes": {name: asdict(theme) for name, theme in THEMES.items()},
            "ack": st.session_state.get("lines_seq", 0),
        },
        on_pin_change=_on_pin,
    )


def pack(found: Lines) -> str:
    """Queries, keys and weights x 65,535, one kind after the other, as base64 of 16-bit numbers."""
    numbers = np.concatenate([found.queries, found.keys, np.rint(found.weights * 65535)])
    return base64.b64encode(numbers.astype("<u2").tobytes()).decode("ascii")


def _pinned(view: View) -> dict[str, Any] | None:
    """The token that is lit until another is pointed at: that of the link, on the side it says."""
    if st.session_state.get("token") is None:
        return None
    return {"at": view.token, "side": st.session_state.get("side") or "query"}


def _on_pin() -> None:
    state = st.session_state
    pin: dict[str, Any] | None = state["lines"].get("pin")
    if not isinstance(pin, dict) or pin.get("trace_key") != state.get("trace_key"):
        return
    state["lines_seq"] = int(pin.get("seq", 0))
    pinned = pin.get("pinned")
    state["token"] = int(pinned["at"]) if isinstance(pinned, dict) else None
    of_keys = isinstance(pinned, dict) and pinned.get("side") == "key"
    state["side"] = "key" if of_keys else None


def _rows(view: View, heads: list[Head], sent: list[Lines]) -> list[list[Any]]:
    """A row for each line, the strongest first, under HEADER."""
    tokens = view.trace.tokens
    lines = [
        (float(weight), Head(layer, head).label, int(i), int(j))
        for (layer, head), one in zip(heads, sent, strict=True)
        for i, j, weight in zip(one.queries, one.keys, one.weights, strict=True)
    ]
    lines.sort(key=lambda line: -line[0])
    return [[name, i, tokens[i], j, tokens[j], round(weight, 6)] for weight, name, i, j in lines]


def _told(rows: list[list[Any]]) -> str:
    """The strongest lines in words; the first token has no choice."""
    strongest = [row for row in rows if row[1]][:NAMED]
    words = [f"{a} ({i}) looks at {b} ({j}) {w:.2f}" for _, i, a, j, b, w in strongest]
    return ", ".join(words) or "none from token 1 on"


def _table(rows: list[list[Any]]) -> None:
    """The same lines in words, the strongest first, and all of them as a file."""
    listed = [row for row in rows if row[1]][:LISTED]
    if listed:
        many = f"{len(listed)} strongest lines" if len(listed) > 1 else "one line"
        caption("In words", f"the {many}, from token 1 on.")
        table(HEADER, listed, height=min(430, 38 + 35 * len(listed)))
    download_table("lines.csv", HEADER, rows, label="Lines as CSV")
