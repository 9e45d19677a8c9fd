"""Training on after the conversion: stored curves of the bundled model, and a short live run."""

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache

import streamlit as st

from mha_viz.analysis.reference_texts import evaluation_texts
from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.chart import chart
from mha_viz.app.widgets.download_buttons import download_table
from mha_viz.app.widgets.recipes import recipe
from mha_viz.app.work.progress import Reporter, may_start, results
from mha_viz.assets import ASSETS
from mha_viz.export import Drawn, Given, rows_data
from mha_viz.figures.recovery import RecoveryCurve, recovery_figure
from mha_viz.figures.theme import TextSizes, Theme
from mha_viz.lessons.recovery import (
    BATCH,
    LENGTH,
    MEASURED_AT,
    STEPS,
    Recovery,
    TrainingOn,
    held_out_loss,
    read_recoveries,
    story_ids,
)
from mha_viz.pruning import chunks

STORED = ASSETS / "grouped.csv"
STORIES = ASSETS / "training.txt"
LIVE_STEPS = 20
LIVE = "live run"
Live = tuple[int, float]  # a step and the held-out loss after it; NaN where it is not measured


def show(view: View, G: int) -> None:
    """The curves and what they say; for another model, why there are none."""
    caption(
        "Recovery",
        f"Held-out loss while the converted model is trained further, {STEPS} steps of {BATCH} × "
        f"{LENGTH} tokens of stories that the bundled model wrote.",
    )
    runs = stored(view)
    if not runs:
        explained.paragraph(
            "Only the bundled model has stored curves. For this model, the losses here are those "
            "right after the conversion; Ainslie et al. 2023 (section 2.1) train for 5% of the "
            "original steps afterwards."
        )
        return
    area = st.container()
    live = [each for each in _live(view, G) if not math.isnan(each[1])]
    sentence = share_sentence(runs)
    given = Given(runs, "read_recoveries(STORED)")
    with area:
        chart(
            recipe(view, _draw_recovery, G=G, runs=given, live=live),
            key="recovery",
            name="Recovery after sharing",
            height=300,
            alt=sentence,
        )
        explained.paragraph(sentence)
    if live:
        explained.paragraph(live_sentence(live, _of(runs, G)))
    download_table("recovery.csv", ["G", "step", "loss, nats per token"], _rows(runs))


def stored(view: View) -> list[Recovery]:
    """The stored runs of this model: those of the bundled one, none for others."""
    return _stored() if view.source == "bundled" else []


def _of(runs: Sequence[Recovery], G: int) -> Recovery:
    return next(run for run in runs if run.n_kv_heads == G)


def share_sentence(runs: Sequence[Recovery]) -> str:
    """How much of the conversion's cost further training wins back, and what the control did."""
    own = max(runs, key=lambda run: run.n_kv_heads)
    others = sorted(
        (run for run in runs if run is not own), key=lambda run: run.n_kv_heads, reverse=True
    )
    shares = _listed([f"{run.won_back(own.converted):.0%}" for run in others])
    groups = ", ".join(str(run.n_kv_heads) for run in others)
    change = own.trained_on - own.converted
    moved = "rises" if change > 0 else "falls"
    return (
        f"{STEPS} steps win back **{shares}** of what the conversion cost (G = {groups}). The "
        f"control, G = {own.n_kv_heads}, in which nothing is shared, {moved} from "
        f"{own.converted:.2f} to {own.trained_on:.2f}: the stories differ from the text that the "
        "loss is measured on. One seed."
    )


def live_sentence(live: Sequence[Live], run: Recovery) -> str:
    """What the live run has reached, beside the stored run."""
    step, loss = live[-1]
    kept = run.losses[MEASURED_AT.index(step)]
    return (
        f"The live run (diamonds) with G = {run.n_kv_heads} is at {loss:.3f} after {step} steps; "
        f"the stored one was at {kept:.3f}."
    )


def _live(view: View, G: int) -> list[Live]:
    """The steps of a live run so far, once the user has asked for it."""
    key = f"train on {view.model.key} {G}"
    start = f"Train G = {G} for {LIVE_STEPS} steps"
    what = (
        f"You can run the first {LIVE_STEPS} of the {STEPS} steps here, on a copy of the model. A "
        "run can be stopped at any step."
    )
    with st.container(key="live_training"):
        if not may_start(key, math.inf, start, what):
            return []
        steps, _ = results(
            key,
            lambda report: _train(view, G, report),
            total=LIVE_STEPS + 1,
            what="steps, the first of which only measures",
            lane="train on",
        )
    return steps


def _train(view: View, G: int, report: Reporter) -> Iterator[Live]:
    """Trains with the settings of the stored run, and measures as often."""
    model = view.model
    held_out = chunks(model, evaluation_texts(), model.config.n_positions)
    ids = story_ids(model.encode, STORIES.read_text(encoding="utf-8"))
    run = TrainingOn(model.network, G, ids)
    for step in range(LIVE_STEPS + 1):
        if step:
            report(0.0)
            run.advance()
        measures = step in MEASURED_AT
        yield step, held_out_loss(run.network, held_out) if measures else math.nan


def _draw_recovery(
    runs: Sequence[Recovery],
    live: Sequence[Live],
    G: int,
    theme: Theme,
    sizes: TextSizes,
) -> Drawn:
    own = max(run.n_kv_heads for run in runs)
    curves = [
        RecoveryCurve(
            f"G = {run.n_kv_heads}{', control' * (run.n_kv_heads == own)}",
            MEASURED_AT,
            run.losses,
            control=run.n_kv_heads == own,
        )
        for run in runs
    ]
    if live:
        steps, losses = zip(*live, strict=True)
        curves.append(RecoveryCurve(LIVE, steps, losses, live=True))
    selected = "" if own == G else f"G = {G}"
    figure = recovery_figure(curves, theme, selected=selected, sizes=sizes)
    data = rows_data(["G", "step", "loss, nats per token"], _rows(runs))
    return figure, data


def _rows(runs: Sequence[Recovery]) -> list[list[object]]:
    return [
        [run.n_kv_heads, step, loss]
        for run in runs
        for step, loss in zip(MEASURED_AT, run.losses, strict=True)
    ]


def _listed(items: Sequence[str]) -> str:
    *first, last = items
    return f"{', '.join(first)} and {last}" if first else last


@lru_cache(maxsize=1)
def _stored() -> list[Recovery]:
    return read_recoveries(STORED) if STORED.is_file() else []
