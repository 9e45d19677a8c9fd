"""How much each head changed, and the pattern of the selected head before and after."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from mha_viz.analysis import compare
from mha_viz.analysis.compare import Alignment, Change
from mha_viz.app.messages import escaped, notice
from mha_viz.app.pages.compare.sides import OtherSide
from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.chart import chart
from mha_viz.app.widgets.choices import segmented_control
from mha_viz.app.widgets.download_buttons import download_matrix, download_table
from mha_viz.app.widgets.head_links import head_button, selectable_head_map
from mha_viz.app.widgets.recipes import recipe
from mha_viz.export import Drawn, Given, head_table, pattern_data
from mha_viz.figures.base import Style
from mha_viz.figures.compared_pattern import NARROW, compared_pattern
from mha_viz.figures.labels import label_width
from mha_viz.figures.scale import Scale
from mha_viz.figures.theme import TextSizes, Theme
from mha_viz.head import Head
from mha_viz.trace import Array

OF = ["selected token", "all tokens"]
TOKENS = "[trace.tokens[i] for i in alignment.a[first:end]]"
OTHER_TOKENS = "[other.tokens[i] for i in alignment.b[first:end]]"
PATTERNS = (
    "compare.aligned_patterns(trace, other, layer, head, alignment)[{}][first:end, first:end]"
)
ROW = "_blank(compare.row_change(trace, other, position, alignment), ablated)"
MEAN = "_blank(compare.change(trace, other, alignment).distance, ablated)"
MAX_TOKENS = 256  # aligned, per side of a heatmap
N_MOST_CHANGED = 3  # heads named by a button
MIN_TOP = 0.01  # of a colour scale, so that rounding errors have no colour
GAP = 16  # pixels between the three patterns
HEIGHT, HEIGHT_ON_STAGE = 320, 490


def blank(values: NDArray[np.float64], ablated: Sequence[Head]) -> NDArray[np.float64]:
    """The values `[L, H]` with NaN for ablated heads: their patterns have no effect."""
    return _blank(values, ablated)


def _blank(values: NDArray[np.float64], ablated: Sequence[Head]) -> NDArray[np.float64]:
    for head in ablated:
        values[head] = np.nan
    return values


def change_map(
    view: View,
    other: OtherSide,
    alignment: Alignment,
    row: NDArray[np.float64],
    change: Change,
) -> None:
    """How much each head changed, at the selected token or on average; a click selects a head."""
    has_row = bool(np.isfinite(row).any()) and view.token > 0
    token = f"{escaped(view.trace.tokens[view.token])} ({view.token})"
    of = OF[0] if has_row else OF[1]
    if has_row:
        of = segmented_control("Change at", OF, OF[0], "change_of", show_label=False)
    at_token = of == OF[0]
    values = row if at_token else change.distance
    largest = float(np.nanmax(values))
    top = max(largest, MIN_TOP)
    empty = " Ablated heads are blank." if other.ablated else ""
    what = (
        f"Share of the weight that moved in the row of {token}"
        if at_token
        else "Share of the weight that moved, the mean over all aligned tokens"
    )
    caption(
        "Change of each head",
        f"{what}: total variation. Colour runs from 0 to {top:.2f}.{empty}",
        " Click a cell to select the head.",
    )
    selectable_head_map(
        view,
        Given(values, ROW if at_token else MEAN, __name__),
        (0.0, top),
        key="change_map",
        name="change",
        title="Change of each head",
        column="change",
        **{
            "ablated": other.ablated,
            **other.given,
            "alignment": Given(alignment, other.alignment_code, __name__),
        },
        alt=f"Change of each head, at most {largest:.3f}.{empty}",
    )
    _most_changed(values)
    if not at_token:
        explained.note(f"Change: {compare.DISTANCE}.")
    columns = ["distance", "weight on unaligned keys before", "weight on unaligned keys after"]
    table = head_table(columns, change.distance, change.elsewhere_a, change.elsewhere_b)
    download_table("change.csv", *table)


def _most_changed(change: NDArray[np.float64]) -> None:
    """Buttons for the heads that changed most."""
    order = np.argsort(-np.nan_to_num(change, nan=-1.0), axis=None)[:N_MOST_CHANGED]
    heads = [Head(*divmod(int(flat), change.shape[1])) for flat in order]
    with st.container(horizontal=True):
        for head in heads:
            if np.isfinite(change[head]):
                head_button(head, change[head], key=f"change {head.key}")


def selected_head(view: View, other: OtherSide, alignment: Alignment) -> None:
    """The pattern of the selected head on both sides, and the difference, side by side."""
    label = view.at.label
    a, b = compare.aligned_patterns(view.trace, other.trace, view.layer, view.head, alignment)
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        notice(f"{label} has been pruned from one of the two models.")
        return
    if view.at in other.ablated:
        notice(
            f"{label} is ablated and writes nothing; its pattern only shows where it would look."
        )
    query = _query(view, alignment)
    first = 0 if query is None else max(0, query + 1 - MAX_TOKENS)
    end = min(len(alignment), first + MAX_TOKENS)
    if end - first < len(alignment):
        which = f"{MAX_TOKENS} of" if first else f"the first {MAX_TOKENS} of"
        up_to = ", up to the selected one" if first else ""
        notice(f"Showing {which} {len(alignment):,} aligned tokens{up_to}.")
        a, b = a[first:end, first:end], b[first:end, first:end]
    tokens = [view.trace.tokens[i] for i in alignment.a[first:end]]
    others = [other.trace.tokens[i] for i in alignment.b[first:end]]
    given = {
        **other.given,
        "first": first,
        "end": end,
        "alignment": Given(alignment, other.alignment_code, __name__),
        "before": Given(a, PATTERNS.format(0), __name__),
        "after": Given(b, PATTERNS.format(1), __name__),
        "query": None if query is None or query >= end else query - first,
        "changed": [i for i in range(end - first) if tokens[i] != others[i]],
        "most_labels": 10 if view.stage else 18,
    }
    largest = float(np.abs(b - a).max())
    caption(
        label,
        f"before: {escaped(other.first_name)}, after: {escaped(other.name)}.",
        " Rows are queries, columns are keys. Difference: orange is more weight, blue less, at "
        f"most {largest:.2f}.",
    )
    _triple(view, label_width(tokens, Style(view.theme, view.sizes)))
    with st.container(key="compared"):
        columns = st.columns(3, gap="small")
    with columns[0]:
        _pattern(view, "before", other.first_name, tokens, TOKENS, given)
    with columns[1]:
        _pattern(view, "after", other.name, others, OTHER_TOKENS, given)
    with columns[2]:
        _difference(view, other, b - a, tokens, given)
    download_matrix("difference.csv", (b - a).astype(np.float32), rows=tokens)


def _triple(view: View, labels: float) -> None:
    """Columns for three squares of one size, of which the first has room for labels."""
    more = labels - NARROW
    share = f"(100% - {more + 2 * GAP:.0f}px) / 3"
    block = ".st-key-compared [data-testid=stHorizontalBlock]"
    column = ".st-key-compared [data-testid=stColumn]"
    st.html(
        "<style>@media (min-width: 641px) {"
        f"{block} {{ gap: {GAP}px; flex-wrap: nowrap; }}"
        f"{column} {{ flex: 0 0 calc({share}); min-width: 0; width: calc({share}); }}"
        f"{column}:first-child {{ flex-basis: calc({share} + {more:.0f}px); }} }}</style>"
    )


def _query(view: View, alignment: Alignment) -> int | None:
    """Where the selected token is among the aligned ones."""
    at = np.flatnonzero(alignment.a == view.token)
    return int(at[0]) if len(at) else None


def _pattern(
    view: View,
    key: str,
    side: str,
    tokens: list[str],
    code: str,
    given: Mapping[str, Any],
) -> None:
    name = f"Pattern of {view.at.label}"
    _square(
        view,
        f"pattern {key}",
        name=f"{name}, {side}",
        alt=f"{name}: {side}, {len(tokens)} aligned tokens.",
        **given,
        tokens=Given(tokens, code),
        values=Given(given[key].value, key),
        title=key,
        labelled=key == "before",
        top=None,
        array="pattern",
        value="weight",
    )


def _difference(
    view: View,
    other: OtherSide,
    difference: Array,
    tokens: list[str],
    given: Mapping[str, Any],
) -> None:
    largest = float(np.abs(difference).max())
    name = f"Difference of the patterns of {view.at.label}"
    _square(
        view,
        "difference",
        name=name,
        alt=f"{name}, at most {largest:.3f}.",
        **given,
        tokens=Given(tokens, TOKENS),
        values=Given(difference, "after - before"),
        title="difference",
        labelled=False,
        top=max(largest, MIN_TOP),
        array="difference",
        value="difference of the weights",
    )


def _square(view: View, key: str, *, name: str, alt: str, **drawn: Any) -> None:
    """One of the three squares; `drawn` are the arguments of `_draw_compared`."""
    chart(
        recipe(view, _draw_compared, **drawn),
        key=key,
        name=name,
        height=HEIGHT_ON_STAGE if view.stage else HEIGHT,
        ratio=1.1,
        alt=alt,
    )


def _draw_compared(
    values: Array,
    tokens: list[str],
    layer: int,
    head: int,
    title: str,
    top: float | None,
    query: int | None,
    first: int,
    changed: list[int],
    labelled: bool,
    most_labels: int,
    scale: Scale,
    dim_sink: bool,
    array: str,
    value: str,
    theme: Theme,
    sizes: TextSizes,
) -> Drawn:
    figure = compared_pattern(
        values,
        tokens,
        theme,
        title=title,
        top=top,
        query=query,
        first=first,
        changed=changed,
        labelled=labelled,
        most_labels=most_labels,
        scale=scale,
        dim_sink=dim_sink,
        sizes=sizes,
    )
    data = pattern_data(values, tokens, name=array, value=value, layer=layer, head=head)
    return figure, data
