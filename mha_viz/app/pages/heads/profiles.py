"""The Head profiles tab: one measure as a map, all of them as a table, and similar heads."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from mha_viz import heads
from mha_viz.app.pages.heads import roles
from mha_viz.app.pages.heads.measures import (
    ENDINGS,
    choose_measure,
    download_frame,
    explain_missing,
    has_values,
    head_of,
    measure_map,
    rounded,
    table_without_empty_columns,
)
from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.head_links import head_button
from mha_viz.app.widgets.tables import table
from mha_viz.app.work.progress import Reporter, ResultSlots, results, wait_for
from mha_viz.export import Given
from mha_viz.head import Head
from mha_viz.heads import MEASURES, NOT_MEASURED
from mha_viz.heads.similarity import DISTANCE, distances, similar_heads

if TYPE_CHECKING:
    import pandas as pd

SEEDS = 5  # of the random tokens
_distances = ResultSlots[NDArray[np.float64]](32)


def show(view: View) -> None:
    """All heads by one measure, all measures of the selected head, and the whole table."""
    name = choose_measure("induction")
    frame = _measured(view)
    if frame is None:
        return
    explain_missing(frame)
    left, right = st.columns(2, gap="medium")
    with left:
        made = Given(frame, "heads.measure(model, trace, seeds=SEEDS)", __name__)
        measure_map(view, made, name, on_text="Measured on this text")
        _similar_heads(view)
        roles.show(view, frame)
    with right:
        _selected_head(view, frame)
        _all_heads(frame, name)
    _definitions()


def _measured(view: View) -> "pd.DataFrame | None":
    """Every measure of every head on this text; None while they are computed."""

    def work(report: Reporter) -> Iterator["pd.DataFrame"]:
        def on_step(done: int, total: int) -> None:
            report(done / total)

        yield heads.measure(view.model, view.trace, seeds=SEEDS, on_step=on_step)

    frames, _ = results(f"profiles {view.trace_key}", work, total=1, what="profiles")
    return frames[0] if frames else None


def _similar_heads(view: View) -> None:
    """Buttons for the heads whose patterns are nearest to the selected one's."""
    trace, layer, head = view.trace, view.layer, view.head

    def work(report: Reporter) -> NDArray[np.float64]:
        return distances(trace, layer, head, on_layer=lambda done: report(done / trace.n_layers))

    slot = _distances(view.trace_key, layer, head)
    found = wait_for(slot, "Comparing all heads", work, lane="similar heads")
    nearest = [] if found is None else similar_heads(found, layer, head)
    if not nearest:  # the text has one token, or the model one head
        return
    caption("Similar heads", f"Nearest patterns on this text, by {DISTANCE}.")
    with st.container(horizontal=True):
        for *at, distance in nearest:
            head_button(Head(*at), distance, key=f"similar {Head(*at).key}")


def _selected_head(view: View, frame: "pd.DataFrame") -> None:
    """Every measure of the selected head that has a value, with its interval."""
    row = frame[(frame["layer"] == view.layer) & (frame["head"] == view.head)].iloc[0]
    rows = [
        [measure.title, *(_written(row[f"{name}{ending}"]) for ending in ENDINGS)]
        for name, measure in MEASURES.items()
        if np.isfinite(row[name])
    ]
    caption(
        view.at.label,
        f"All measures of this head. “low” and “high” bound the 95% interval over {SEEDS} seeds, "
        "for measures on random tokens.",
    )
    table(["measure", "value", "low", "high"], rows)


def _written(value: float) -> str:
    number = rounded(value)
    return "" if number is None else f"{number:.4f}"


def _all_heads(frame: "pd.DataFrame", name: str) -> None:
    """The table of all heads; those above a minimum if the selected measure has values."""
    caption("All heads", "Click a column header to sort; the table has a search icon.")
    shown = frame.dropna(how="all", subset=list(MEASURES))  # without pruned heads
    if has_values(frame, name):
        least = explained.number_input(
            f"Minimum: {MEASURES[name].title}",
            value=0.0,
            step=0.05,
            key="least_measure",
            bind="query-params",
            width=240,
        )
        shown = shown[~(shown[name] < least)]
    header = ["head", *(measure.title for measure in MEASURES.values())]
    rows = [
        [head_of(row).label, *(rounded(row[measure]) for measure in MEASURES)]
        for _, row in shown.iterrows()
    ]
    table_without_empty_columns(header, rows, height=320)
    download_frame("heads.csv", frame)


def _definitions() -> None:
    """Formula, input, exclusions and source of each measure."""
    with st.expander("How each measure is defined"):
        for measure in MEASURES.values():
            source = f" ({measure.source})" if measure.source else ""
            explained.paragraph(f"**{measure.title}**{source}")
            st.latex(measure.formula)
            explained.note(f"Input: {measure.measured_on}. Excluded: {measure.exclusions}")
        explained.paragraph("**Not measured**")
        for reason in NOT_MEASURED.values():
            explained.note(reason)
