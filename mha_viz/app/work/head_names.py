"""What the heads of each model are called: measured once, for all users, while nobody waits.

    head_names.of(model)        names of every head, or None while they are not known
    head_names.measures(model)  the measures behind them, a row per head
    head_names.measure(model)   measures them in the background, if they are not known

The bundled model's measures are an asset, which scripts/measure_heads.py writes.
"""

import csv
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import streamlit as st

from mha_viz import heads
from mha_viz.analysis.reference_texts import reference_texts
from mha_viz.app.work import jobs
from mha_viz.app.work.jobs import Job, Queue
from mha_viz.app.work.progress import Reporter, ResultSlot, ResultSlots
from mha_viz.assets import ASSETS
from mha_viz.errors import MhaVizError
from mha_viz.heads.names import Names, names
from mha_viz.model import Model

Rows: TypeAlias = Sequence[Mapping[Any, Any]]
BUNDLED = ASSETS / "bundled_heads.csv"
SEEDS = 5  # of random tokens
MAX_PARAMETERS = 2e8  # of a model that is measured without being asked for: GPT-2 small in a minute
PAUSE = 3.0  # seconds for the first picture
YIELD = 0.2  # seconds between two looks at whether a user's own work has ended
WATCH = 2.0  # seconds between two looks at whether the names are there

_measured = ResultSlots[Rows](8)
_queue = Queue(workers=1)


def of(model: Model) -> Names | None:
    """The names of every head of the model; None while they are not known."""
    rows = measures(model)
    return None if rows is None else names(rows)


def measures(model: Model) -> Rows | None:
    """The rows of `heads.measure_texts` on the reference texts; None while they are not known."""
    weights_hash, rows = stored(BUNDLED)
    if model.description.weights_hash == weights_hash:
        return rows
    return _slot(model).result


def measure(model: Model) -> None:
    """Measures the heads of the model in the background; the page runs again afterwards.

    Several users of one model measure it once. A large model is not measured.
    """
    slot = _slot(model)
    if measures(model) is not None or model.description.n_parameters > MAX_PARAMETERS:
        return
    job = jobs.find(slot.name)
    if job is None:
        job = Job(lambda report: iter([_measure(model, slot, report)]), total=1)
        try:
            jobs.start(slot.name, job, _queue)
        except MhaVizError:  # too many wait; the next run of the page tries again
            return
    if job.active:
        _watch(slot, job)


@lru_cache(maxsize=1)
def stored(path: Path) -> tuple[str, Rows]:
    """The hash of the weights that a file of measures belongs to, and the measures."""
    first, *table = path.read_text(encoding="utf-8").splitlines()
    rows = [{name: float(text) for name, text in row.items()} for row in csv.DictReader(table)]
    return first.removeprefix("weights "), rows


def _measure(model: Model, slot: ResultSlot[Rows], report: Reporter) -> Rows:
    """The rows, from the slot if another user's job has filled it meanwhile."""
    if slot.result is None:
        _rest(PAUSE, report)

        def on_layer() -> None:
            _rest(0.0, report)

        plain = model.with_template(False)
        *_, last = heads.measure_texts(plain, reference_texts(), seeds=SEEDS, on_layer=on_layer)
        slot.result = last.frame.to_dict("records")
    return slot.result


def _rest(seconds: float, report: Reporter) -> None:
    """Waits for so long, and then until no user's own work is running."""
    end = time.monotonic() + seconds
    while time.monotonic() < end or jobs.foreground.busy or jobs.background.busy:
        report(0.0)  # which ends the job after a stop
        time.sleep(YIELD)
    report(0.0)


@st.fragment(run_every=WATCH)
def _watch(slot: ResultSlot[Rows], job: Job[Rows]) -> None:
    """The page runs again when the job is over."""
    jobs.find(slot.name)  # keeps the job alive while the page is open
    if not job.active:
        st.rerun()


def _slot(model: Model) -> ResultSlot[Rows]:
    return _measured(model.with_template(False).key)
