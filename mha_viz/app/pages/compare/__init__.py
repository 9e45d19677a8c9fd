"""The Compare page: one word changed, another text, another model, or ablated heads."""

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from mha_viz.analysis import compare
from mha_viz.analysis.compare import Alignment, Change
from mha_viz.app.messages import notice, problem
from mha_viz.app.pages.compare import outcomes, patterns, sides
from mha_viz.app.pages.compare.one_word import one_word
from mha_viz.app.pages.compare.outcomes import Both
from mha_viz.app.pages.compare.patterns import MAX_TOKENS as MAX_TOKENS
from mha_viz.app.pages.compare.sides import OtherSide
from mha_viz.app.pages.compare.strips import Row, row_of, sentence, shown_rows, strips
from mha_viz.app.view import View
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.choices import segmented_control
from mha_viz.app.work.progress import Reporter, ResultSlots, wait_for
from mha_viz.errors import ShapeError

SIDES = {
    "another text": sides.other_text,
    "another model": sides.other_model,
    "ablated heads": sides.ablated_heads,
}
AGAINST = ["one word changed", *SIDES]
ALL_ABLATED = (
    "All heads are ablated. Only the embeddings, the MLPs and the biases still write to the "
    "residual stream, so there is no head to compare."
)

_changes = ResultSlots[tuple[NDArray[np.float64], Change]](8)


def show(view: View) -> None:
    """The choice of the other side, and how patterns and predictions differ between the two."""
    # On a stage, the patterns come first and the choices below them.
    top, choices = (st.container(), st.container()) if view.stage else (None, st.container())
    with choices:
        other = _choose_other_side(view)
    if other is None:
        return
    alignment = other.alignment(view.trace)
    both = outcomes.outcomes(view, other, alignment)
    if both is None:
        return
    with top or st.container():
        changed = _changed(view, other, alignment)
        _words(view, other, alignment, both, None if changed is None else changed[0])
        if view.stage and changed is not None:
            patterns.selected_head(view, other, alignment)
    if changed is not None:
        _heads(view, other, alignment, *changed)
    outcomes.show(view, other, alignment, both)


def _choose_other_side(view: View) -> OtherSide | None:
    """The other side, or None if there is none; the page then says why."""
    state, link = st.session_state, st.query_params
    if "against" not in state and "against" not in link:
        if "other_text" in link:
            state["against"] = "another text"  # a link from before there were other choices
        elif "against_kept" in state:
            state["against"] = state["against_kept"]  # back from another page
    against = segmented_control("Compare with", AGAINST, AGAINST[0], "against", show_label=False)
    state["against_kept"] = against
    if against == AGAINST[0]:
        return one_word(view, st.container(horizontal=True))
    return SIDES[against](view)


def _changed(
    view: View, other: OtherSide, alignment: Alignment
) -> tuple[NDArray[np.float64], Change] | None:
    """How much each head changed, at the selected token and on average.

    None if no head can be compared; the page then says why.
    """
    a, b = view.trace, other.trace
    try:
        compare.check_sizes(a, b)
    except ShapeError as error:
        problem(str(error))
        return None
    if not len(alignment):
        notice("The two sides share no token after the first, so there is nothing to compare.")
        return None

    def work(report: Reporter) -> tuple[NDArray[np.float64], Change]:
        row = compare.row_change(a, b, view.token, alignment)
        change = compare.change(a, b, alignment, on_layer=lambda n: report(n / a.n_layers))
        for values in (row, change.distance, change.elsewhere_a, change.elsewhere_b):
            patterns.blank(values, other.ablated)
        return row, change

    slot = _changes(view.trace_key, other.trace_key, view.token)
    found = wait_for(slot, "Comparing all heads", work, lane="changes")
    if found is None:
        return None
    if not found[1].n_queries:
        notice("The two sides share no token after the first, so there is nothing to compare.")
        return None
    if not np.isfinite(found[1].distance).any():
        no_heads = "No head exists in both models, so there is nothing to compare."
        notice(ALL_ABLATED if other.ablated else no_heads)
        return None
    return found


def _words(
    view: View,
    other: OtherSide,
    alignment: Alignment,
    both: Both,
    change: NDArray[np.float64] | None,
) -> None:
    """Both texts, and the sentence on what changed."""
    rows = _rows(view, other, both)
    if not view.stage:
        strips(view, other, alignment, rows)
    none = np.full((1, 1), np.nan)
    after = outcomes.first_after(view, other, both)
    sentence(view, other, alignment, rows, none if change is None else change, after)
    if view.stage:
        caption("Next token", " · ".join(shown_rows(rows)))


def _rows(view: View, other: OtherSide, both: Both) -> tuple[Row, Row]:
    first = outcomes.most_likely(view.model, both.before)
    second = outcomes.most_likely(other.model, both.after)
    before = row_of(view, view.trace, view.token, both.before, first)
    return before, row_of(view, other.trace, both.position, both.after, second)


def _heads(
    view: View,
    other: OtherSide,
    alignment: Alignment,
    row: NDArray[np.float64],
    change: Change,
) -> None:
    """The map of all heads, and beside it the selected one."""
    if view.stage:
        patterns.change_map(view, other, alignment, row, change)
        return
    left, right = st.columns([3, 7], gap="medium")
    with left:
        patterns.change_map(view, other, alignment, row, change)
    with right:
        patterns.selected_head(view, other, alignment)
