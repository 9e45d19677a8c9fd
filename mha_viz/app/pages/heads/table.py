"""The passport: a measure as a map, all of them as a table, heads alike, and published roles."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from mha_viz import heads
from mha_viz.analysis import logit_attribution
from mha_viz.app.messages import notice
from mha_viz.app.view import View
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.chart import chart
from mha_viz.app.widgets.choices import segmented_control
from mha_viz.app.widgets.download_buttons import download_table
from mha_viz.app.widgets.tables import table
from mha_viz.app.work.progress import Reporter, ResultSlots, results, wait_for
from mha_viz.export import head_table
from mha_viz.figures.head_map import head_map
from mha_viz.head import Head
from mha_viz.heads import MEASURES, NOT_MEASURED
from mha_viz.heads.measures import ON_RANDOM_TOKENS
from mha_viz.heads.profile import with_interval
from mha_viz.heads.roles import LOGIT_DIFFERENCE, check, roles_for
from mha_viz.heads.similarity import DISTANCE, distances, similar_heads

if TYPE_CHECKING:
    import pandas as pd

SEEDS = 5
_alike = ResultSlots[NDArray[np.float64]](32)
_direct = ResultSlots[NDArray[np.float64]](4)
ENDS = ("", "_low", "_high")


def measured(view: View) -> "pd.DataFrame | None":
    """The passport of every head on this text; None while it is being measured."""
    model, trace = view.model, view.trace

    def work(report: Reporter) -> Iterator["pd.DataFrame"]:
        yield heads.measure(
            model, trace, seeds=SEEDS, on_step=lambda done, total: report(done / total)
        )

    found, _ = results(f"passport {view.trace_key}", work, total=1, what="passports")
    return found[0] if found else None


def show(view: View) -> None:
    """The heads by one measure, the chosen head in all of them, and the whole table."""
    name = choose()
    numbers = measured(view)
    if numbers is None:
        return
    say_what_is_missing(numbers)
    left, right = st.columns(2, gap="medium")
    with left:
        heads_by(view, numbers, name)
        alike(view)
        roles(view, numbers)
    with right:
        one_head(view, numbers)
        all_heads(numbers, name)
    definitions()


def choose() -> str:
    """The measure that colours the map."""
    chosen: str = segmented_control(
        "Measure", list(MEASURES), "induction", "measure", show_label=False
    )
    return chosen


def say_what_is_missing(frame: "pd.DataFrame") -> None:
    """Why some measures have no value for any head, where that is so."""
    missing = [name for name in MEASURES if not _found(frame, name)]
    if missing == [name for name in MEASURES if name not in ON_RANDOM_TOKENS]:
        notice(
            "Measures on the text need at least two tokens, one of them after the first and not "
            "special; those on random tokens are there."
        )
    elif missing:
        titles = ", ".join(MEASURES[name].title for name in missing)
        notice(f"Not measured here, since no token counts for it: {titles}.")


def _found(frame: "pd.DataFrame", name: str) -> bool:
    return bool(frame[name].notna().any())


def heads_by(view: View, frame: "pd.DataFrame", name: str, *, over: str = "") -> None:
    """The map of one measure, if it has values; a click chooses the head.

    `over` is said of values that were not measured on this text alone.
    """
    if not _found(frame, name):
        return
    measure = MEASURES[name]
    shape = (view.trace.n_layers, view.trace.n_heads)
    values: NDArray[np.float64] = frame[name].to_numpy(dtype=np.float64).reshape(shape)
    low, high = measure.range
    top = high if np.isfinite(high) else float(np.nanmax(values, initial=1.0))
    best = divmod(int(np.nanargmax(values)), shape[1])
    caption(
        measure.title,
        f"{over or f'measured on {measure.measured_on}'}; colour from {low:g} to {top:.3g}. A "
        "click opens the head.",
    )
    figure = head_map(
        values, view.theme, bounds=(low, top), chosen=(view.layer, view.head),
        name=measure.title.lower(), sizes=view.sizes,
    )  # fmt: skip
    chart(
        figure, key="head_numbers", on_select=_clicked,
        selection_mode="points", height=min(560, 60 + 44 * shape[0]),
        table=lambda: head_table([name], values),
        alt=f"{measure.title}: largest at {Head(best[0], best[1]).label}, {values[best]:.3f}.",
    )  # fmt: skip


def _clicked() -> None:
    points = st.session_state["head_numbers"]["selection"]["points"]
    if points:
        layer, head, *_ = points[0]["customdata"]
        st.session_state["at"] = Head(layer, head).key


def one_head(view: View, frame: "pd.DataFrame") -> None:
    """Every measure of the chosen head that has a value, with its interval."""
    row = frame[(frame["layer"] == view.layer) & (frame["head"] == view.head)].iloc[0]
    rows = [
        [measure.title, *(_written(row[f"{name}{end}"]) for end in ENDS)]
        for name, measure in MEASURES.items()
        if np.isfinite(row[name])
    ]
    caption(
        view.at.label,
        f"every measure; low and high end a 95 % interval over {SEEDS} seeds, where it was "
        "measured on random tokens.",
    )
    table(["measure", "value", "low", "high"], rows)


def rounded(value: float) -> float | None:
    """To four places, as the tables show it, and never -0; None for NaN."""
    return round(float(value), 4) + 0.0 if np.isfinite(value) else None


def _written(value: float) -> str:
    found = rounded(value)
    return "" if found is None else f"{found:.4f}"


def filled(header: Sequence[str], rows: Sequence[Sequence[object]], *, height: int) -> None:
    """A table without the columns that are empty throughout."""
    kept = [i for i in range(len(header)) if any(row[i] not in (None, "") for row in rows)]
    table([header[i] for i in kept], [[row[i] for i in kept] for row in rows], height=height)


def all_heads(frame: "pd.DataFrame", name: str) -> None:
    """The whole table, sortable; only heads from a value of the chosen measure on."""
    caption("All heads", "press a column to sort; the table has its own search.")
    shown = frame.dropna(how="all", subset=list(MEASURES))  # heads that the model has
    if _found(frame, name):
        least = st.number_input(
            f"{MEASURES[name].title} of at least", value=0.0, step=0.05, key="least_measure",
            bind="query-params", width=240,
        )  # fmt: skip
        shown = shown[~(shown[name] < least)]
    header = ["head", *(measure.title for measure in MEASURES.values())]
    rows = [
        [Head(int(row["layer"]), int(row["head"])).label, *(rounded(row[m]) for m in MEASURES)]
        for _, row in shown.iterrows()
    ]
    filled(header, rows, height=320)
    columns = list(frame.columns)
    download_table("heads.csv", columns, frame.astype(object).to_numpy().tolist())


def alike(view: View) -> None:
    """Heads whose patterns on this text are nearest to the chosen head's, where any can be told."""
    found = _distances(view)
    nearest = [] if found is None else similar_heads(found, view.layer, view.head)
    if not nearest:  # one token, or no other head
        return
    caption("Heads like this one", f"on this text, by {DISTANCE}.")
    with st.container(horizontal=True):
        for layer, head, distance in nearest:
            st.button(
                f"{Head(layer, head).label} · {distance:.2f}", key=f"alike {Head(layer, head).key}",
                on_click=_choose, args=(Head(layer, head).key,),
            )  # fmt: skip


def _choose(at: str) -> None:
    st.session_state["at"] = at


def _distances(view: View) -> NDArray[np.float64] | None:
    trace, layer, head = view.trace, view.layer, view.head

    def work(report: Reporter) -> NDArray[np.float64]:
        return distances(trace, layer, head, on_layer=lambda done: report(done / trace.n_layers))

    slot = _alike(view.trace_key, layer, head)
    return wait_for(slot, "Comparing all heads", work, lane="alike")


def roles(view: View, frame: "pd.DataFrame") -> None:
    """What papers call heads of GPT-2 small, and whether it shows here; nothing for others."""
    published = roles_for(view.about, view.model.config)
    if not published:
        return
    caption(
        "Published roles",
        "of GPT-2 small, with their source; a role was found by intervening, and is checked here "
        "against what was measured.",
    )
    state = st.session_state
    st.button("Check on this model", key="check_roles", on_click=lambda: state.update(roles=True))
    verdicts = {}
    if state.get("roles"):
        slot = _direct(view.about.weights_hash)
        direct = wait_for(slot, "Measuring the direct effects", _effects(view), lane="roles")
        if direct is not None:
            frame = frame.assign(**with_interval(LOGIT_DIFFERENCE, direct))
            verdicts = {v.role: v for v in (check(role, frame) for role in published.values())}
    words = {True: "confirmed", False: "not confirmed", None: "not measured here"}
    rows = [
        [
            Head(role.layer, role.head).label, role.name, role.because,
            words[verdicts[role].confirmed] if role in verdicts else "",
            rounded(verdicts[role].value) if role in verdicts else None, role.source,
        ]
        for role in published.values()
    ]  # fmt: skip
    filled(["head", "role", "because", "check", "value", "source"], rows, height=320)


def _effects(view: View) -> Callable[[Reporter], NDArray[np.float64]]:
    return lambda report: logit_attribution.ioi_direct_effects(view.model, on_progress=report)


def definitions() -> None:
    """What each measure is: formula, input, exclusions, source."""
    with st.expander("What is measured, and how"):
        for measure in MEASURES.values():
            source = f" ({measure.source})" if measure.source else ""
            st.markdown(f"**{measure.title}**{source}")
            st.latex(measure.formula)
            st.caption(f"On {measure.measured_on}. Left out: {measure.exclusions}")
        st.markdown("**Not measured here**")
        for words in NOT_MEASURED.values():
            st.caption(words)
