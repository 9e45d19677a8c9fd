"""What the parts of the Next token page share: the positions that are drawn, and names."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import streamlit as st
from numpy.typing import NDArray

from mha_viz.app.view import View
from mha_viz.app.widgets.chart import chart
from mha_viz.export import table_csv
from mha_viz.trace import Array

_SIGHT = (Path(__file__).parent / "sight.js").read_text(encoding="utf-8")
COLUMNS, ON_STAGE = 18, 14  # positions side by side; more would leave too little of each token


def window(view: View, n: int) -> range:
    """The positions that are drawn, of the first `n`: all, or as many as fit around the pinned one.

    Where there are more, a slider and two buttons move the pin.
    """
    columns = ON_STAGE if view.stage else COLUMNS
    if n <= columns:
        return range(n)
    at = min(view.token, n - 1)
    st.session_state["position"] = at
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.button(
            "Earlier", on_click=pin, args=(max(0, at - columns),), disabled=at == 0,
            shortcut="Left", key="earlier",
        )  # fmt: skip
        st.button(
            "Later", on_click=pin, args=(min(n - 1, at + columns),), disabled=at == n - 1,
            shortcut="Right", key="later",
        )  # fmt: skip
        st.slider("Position", 0, n - 1, key="position", on_change=_take_slider)
    first = max(0, min(at - columns // 2, n - columns))
    return range(first, first + columns)


def pin(position: int) -> None:
    """Makes this the chosen token of the text, here and on every other page."""
    st.session_state["token"] = position


def _take_slider() -> None:
    pin(int(st.session_state["position"]))


def drawn(seen: range, n: int) -> str:
    """Which positions a figure shows, where these are not all."""
    if len(seen) == n:
        return ""
    return f" Positions {seen.start:,} to {seen.stop - 1:,} of {n:,} are drawn."


def names(view: View, ids: Iterable[int]) -> list[str]:
    """What tokens of the vocabulary are called, each by itself."""
    return [token.label for token in view.model.read(list(ids))]


def in_rows(flat: Sequence[str], n: int) -> list[Sequence[str]]:
    """The items of a flat list in rows of `n`."""
    return [flat[start : start + n] for start in range(0, len(flat), n)]


def share(p: float) -> str:
    """A probability in two digits that is never rounded to impossible or to certain."""
    return "<0.01" if p < 0.005 else ">0.99" if p >= 0.995 else f"{p:.2f}"


def pairs(labels: Sequence[str], shares: Array) -> list[object]:
    """Each token and its probability, one after the other, as cells of a row."""
    return [cell for pair in zip(labels, shares.tolist(), strict=True) for cell in pair]


def next_ids(view: View, at: range) -> NDArray[np.int64]:
    """The token that does follow each position; -1 where the text ends."""
    return np.array([*view.trace.token_ids, -1], dtype=np.int64)[at.start + 1 : at.stop + 1]


def following(view: View, at: range) -> list[str]:
    """What the token that does follow each position is called; empty where the text ends."""
    return [*view.trace.tokens, ""][at.start + 1 : at.stop + 1]


def tokens_box(
    figure: go.Figure, *, key: str, alt: str, name: str, height: int, n: int, shown: int
) -> None:
    """A figure of `n` columns of tokens; a narrow screen moves it sideways, in a box of its own.

    The box begins where column `shown` is in its middle, and goes there again when it changes.
    """
    st.html(f"<style>:root {{ --columns: {n}; }}</style>")
    with st.container(key="tokens_box"):
        chart(figure, key=key, alt=alt, name=name, height=height)
    with st.container(key="unseen sight"):
        script = _SIGHT.replace("SHARE", f"{(shown + 0.5) / n:.4f}")
        st.html(f"<script>{script}</script>", unsafe_allow_javascript=True)


def table_button(
    name: str, make: Callable[[], tuple[list[str], list[list[object]]]], label: str
) -> None:
    """A button that saves a table as CSV; its header and rows are made when it is asked for."""
    st.download_button(
        label, lambda: table_csv(*make()), name, "text/csv", key=f"csv_{name}", on_click="ignore",
        icon=":material/download:",
    )  # fmt: skip
