"""Both texts on one grid, one over the other, and one sentence that says what changed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from mha_viz.analysis.compare import Alignment
from mha_viz.analysis.outcome import Outcome
from mha_viz.app.messages import escaped
from mha_viz.app.pages.compare.one_word import changed_words
from mha_viz.app.pages.compare.sides import OtherSide
from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.figures.theme import Theme, sequential_colour
from mha_viz.head import Head
from mha_viz.tokens import shorten
from mha_viz.trace import Array, Trace

_CSS = (Path(__file__).parent / "strips.css").read_text(encoding="utf-8")
MOST = 120  # columns of a strip; of a longer text, those around what changed
AROUND = 15  # columns on each side
VISIBLE = 0.005  # a smaller weight has no number
SMALL = 0.01  # of a weight or a probability; a smaller change counts as none

Column = tuple[int | None, int | None]  # a position in either text


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """What a query looks at on one side, and what the model expects after it."""

    weights: Array  # [T]
    query: int
    token: str
    probability: float


def columns(n_a: int, n_b: int, alignment: Alignment) -> list[Column]:
    """A column for each pair, and between them what only one text has, side by side."""
    found: list[Column] = []
    a = b = 0
    pairs = [*zip(alignment.a.tolist(), alignment.b.tolist(), strict=True), (n_a, n_b)]
    for i, j in pairs:
        found += zip_longest(range(a, i), range(b, j))
        found.append((i, j))
        a, b = i + 1, j + 1
    return found[:-1]


def row_of(view: View, trace: Trace, query: int, outcome: Outcome, token: str) -> Row:
    """The row of the selected head at one query; a pruned head looks at nothing."""
    exists = view.layer < trace.n_layers and view.head < trace.n_heads
    weights = np.zeros(trace.n_tokens, dtype=np.float32)
    if exists:
        weights = np.nan_to_num(trace.pattern(view.layer, view.head)[query])
    return Row(weights, query, token, float(outcome.probabilities.max()))


def strips(view: View, other: OtherSide, alignment: Alignment, rows: tuple[Row, Row]) -> None:
    """The tokens of both texts, shaded by what the selected head looks at, and the predictions."""
    every = columns(view.trace.n_tokens, other.trace.n_tokens, alignment)
    shown = _near(every, rows, view, other)
    aligned = set(zip(alignment.a.tolist(), alignment.b.tolist(), strict=True))
    boxes = []
    for n, column in enumerate(every):
        if n not in shown:
            if n - 1 in shown:
                boxes.append('<div class="pair gap"><span>…</span><span>…</span></div>')
            continue
        cells = [
            _chip(trace, at, row, theme=view.theme, tag=tag if column not in aligned else "")
            for trace, at, row, tag in zip(
                (view.trace, other.trace), column, rows, ("s", "u"), strict=True
            )
        ]
        boxed = None not in column and not _same(view, other, column)
        boxes.append(f'<div class="pair{" changed" if boxed else ""}">{"".join(cells)}</div>')
    ends = "".join(map(_expected, rows))
    names = '<div class="pair names"><span>before</span><span>after</span></div>'
    grid = f'{names}{"".join(boxes)}<div class="pair">{ends}</div>'
    st.html(f'<style>{_CSS}</style><div class="strips">{grid}</div>')


def _expected(row: Row) -> str:
    token = escaped(shorten(row.token))
    return f'<span class="next">→ <b>{token}</b><i>{percent(row.probability)}</i></span>'


def percent(p: float) -> str:
    """A probability for a sentence, as HTML."""
    return f"{p:.0%}" if p >= 0.01 else "&lt;1%"


def sentence(
    view: View,
    other: OtherSide,
    alignment: Alignment,
    rows: tuple[Row, Row],
    change: NDArray[np.float64],
    after: float | None,
) -> None:
    """What changed, what that did to a head, and what came of it; one sentence each.

    `change` `[L, H]` is that of the chosen row. `after` is the probability, on the other side, of
    the token that is most likely before.
    """
    large = ' style="display: block; font-size: 1.6rem; line-height: 2rem"' if view.stage else ""
    parts = [f"<b{large}>{_what(view, other, alignment)}</b>"]
    if np.isfinite(change).any():
        parts.append(_head(view, other, alignment, rows, change))
    parts.append(_result(rows, after))
    explained.html(f'<div class="caption words compared">{" ".join(parts)}</div>')


def _what(view: View, other: OtherSide, alignment: Alignment) -> str:
    if other.swap is not None:
        old, new = map(escaped, changed_words(view, other))
        return f"“{old}” became “{new}”."
    if other.ablated:
        labels = ", ".join(head.label for head in other.ablated[:6])
        more = len(other.ablated) - 6
        return f"Ablated: {labels}{f' and {more} more' if more > 0 else ''}."
    n, n_a, n_b = len(alignment), view.trace.n_tokens, other.trace.n_tokens
    if other.model is not view.model and view.trace.token_ids == other.trace.token_ids:
        return f"The same text in {escaped(other.name)}."
    return f"{n:,} of {n_a:,} and {n_b:,} tokens are aligned."


def _head(
    view: View,
    other: OtherSide,
    alignment: Alignment,
    rows: tuple[Row, Row],
    change: NDArray[np.float64],
) -> str:
    """The key whose weight changed most in the selected head, and the head that changed most."""
    known = np.nan_to_num(change, nan=-1.0)
    first = Head(*map(int, np.unravel_index(known.argmax(), known.shape)))
    if change[first] < SMALL:
        return "No head changed at this token."
    largest = f"{first.label} changed most ({change[first]:.2f})."
    if not np.isfinite(change[view.at]):
        return largest
    moved = rows[1].weights[alignment.b] - rows[0].weights[alignment.a]
    n = int(np.abs(moved).argmax())
    i, j = int(alignment.a[n]), int(alignment.b[n])
    was, now = rows[0].weights[i], rows[1].weights[j]
    query = f"{escaped(view.trace.tokens[view.token])} ({view.token})"
    key = escaped(view.trace.tokens[i])
    if view.trace.tokens[i] != other.trace.tokens[j]:
        key = f"{key} or {escaped(other.trace.tokens[j])}"
    said = f"At {query}, {view.at.label} gives {key} ({i}) {now:.2f} instead of {was:.2f}."
    if abs(now - was) < SMALL:
        said = f"At {query}, {view.at.label} looks where it did before."
    return said if first == view.at else f"{said} {largest}"


def _result(rows: tuple[Row, Row], after: float | None) -> str:
    before, token = rows[0].probability, escaped(rows[0].token)
    instead = ""
    if rows[1].token != rows[0].token:
        instead = f"; now {escaped(rows[1].token)} is most likely ({percent(rows[1].probability)})"
    if after is None:
        return f"Before, {token} is most likely ({percent(before)}){instead}."
    if abs(after - before) < SMALL:
        return f"{token} stays at {percent(before)}{instead}."
    verb = "falls" if after < before else "rises"
    return f"{token} {verb} from {percent(before)} to {percent(after)}{instead}."


def _near(every: Sequence[Column], rows: tuple[Row, Row], view: View, other: OtherSide) -> set[int]:
    """The columns that are shown: all of a short text, else those around what matters."""
    if len(every) <= MOST:
        return set(range(len(every)))
    changed = [n for n, c in enumerate(every) if not _same(view, other, c)][:3]
    keys = {int(key) for key in rows[0].weights.argsort()[::-1][:2]} | {view.token}
    seen = [n for n, (i, _) in enumerate(every) if i in keys]
    return {n for at in {*changed, *seen} for n in range(at - AROUND, at + AROUND + 1)}


def _same(view: View, other: OtherSide, column: Column) -> bool:
    i, j = column
    return i is not None and j is not None and view.trace.tokens[i] == other.trace.tokens[j]


def _chip(trace: Trace, at: int | None, row: Row, *, theme: Theme, tag: str) -> str:
    if at is None:
        return '<span class="empty"></span>'
    weight = float(row.weights[at])
    fill = sequential_colour(theme, weight**0.5)
    ink = f";color:{theme.ink_on_strong}" if weight**0.5 >= theme.ink_flips_at else ""
    label = escaped(shorten(trace.tokens[at]))
    name = f"<{tag}>{label}</{tag}>" if tag else label
    number = f"{weight:.2f}".removeprefix("0") if weight >= VISIBLE else ""
    chosen = ' class="marked"' if at == row.query else ""
    return f'<span{chosen} style="background:{fill}{ink}">{name}<i>{number}</i></span>'


def shown_rows(both: tuple[Row, Row]) -> Iterator[str]:
    """For stage mode: what is expected on either side."""
    for name, row in zip(("before", "after"), both, strict=True):
        yield f"{name} <b>{escaped(shorten(row.token))} {percent(row.probability)}</b>"
