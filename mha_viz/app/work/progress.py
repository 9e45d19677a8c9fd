"""Long-running work on a page: its results as they come, its progress, and a Stop button.

A page shows results as they come, under a name that says what they depend on:

    def work(report: Reporter) -> Iterator[float]:
        for text in texts:
            yield loss(text, on_progress=report)

    losses, over = results(f"loss {key}", work, total=len(texts), what="texts", lane="loss")

Or it waits for a single result that it needs, which is kept for all users:

    _traces = ResultSlots[Trace](8)
    trace = wait_for(_traces(key), "Running the model", work, lane="text")  # None after a stop

Quick work shows no progress. The work must not call Streamlit; `report` takes the fraction of
the next result that is done, and stops the work after a click on Stop. Each user has at most one
running job per lane: new work in a lane stops the job that is still running there.
"""

import time
from collections.abc import Callable, Hashable, Iterator
from functools import lru_cache
from itertools import count
from typing import Any, Generic, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from mha_viz.app import glossary
from mha_viz.app.messages import problem
from mha_viz.app.work import jobs
from mha_viz.app.work.jobs import Halt as Halt
from mha_viz.app.work.jobs import Job, Queue
from mha_viz.app.work.jobs import Reporter as Reporter
from mha_viz.errors import MhaVizError

T = TypeVar("T")
QUICK = 0.5  # seconds that a page waits for work before it shows progress
TICK, BLOCKING_TICK = 0.6, 0.2  # seconds between updates; the second while the page waits
MULTIPLY_ADDS = 3e11  # a few seconds on one core; larger work starts only after a click
KEPT = 32  # results per user; older ones are computed again when they are needed
_numbers = count()


def results(
    name: str,
    work: Callable[[Reporter], Iterator[T]],
    *,
    total: int,
    what: str,
    cost: str = "",
    lane: str = "",
) -> tuple[list[T], bool]:
    """The results of the job of that name so far, and whether it is over.

    Starts the job if there is none yet: at once or, if `cost` says that it is slow, after a click
    on a button. `what` names the results ("texts"). The page says why a job failed.
    """
    if lane:
        _enter(lane, name)
    job: Job[T] | None = jobs.find(name)
    _keep(name)
    if job is None:
        again = st.session_state.pop(f"again {name}", False)
        if cost and not again and not st.button("Measure", key=f"start {name}", help=cost):
            st.caption(cost, help=glossary.help_for(cost))
            return [], False
        try:
            job = Job(work, total=total)
            jobs.start(name, job)
        except MhaVizError as error:
            problem(str(error))
            return [], False
        job.over.wait(QUICK)
    if job.active:
        _watch(name, what, len(job.results))
    elif job.state == "stopped":
        _stopped(f"Stopped after {len(job.results)} of {job.total} {what}.", name, _start_again)
    elif job.state == "failed":
        problem(job.error)
        _start_button(name, _start_again)
    return list(job.results), not job.active


class ResultSlot(Generic[T]):
    """A slot for a result shared by all users; empty until the first computation finishes."""

    def __init__(self) -> None:
        self.result: T | None = None
        self.name = f"slot {next(_numbers)}"


class ResultSlots(Generic[T]):
    """A slot for each key; keeps the `most` slots that were used last."""

    def __init__(self, most: int) -> None:
        self._slot = lru_cache(most)(lambda key: ResultSlot[T]())

    def __call__(self, *key: Hashable) -> ResultSlot[T]:
        """The slot of that key."""
        return self._slot(key)


def wait_for(
    slot: ResultSlot[T], what: str, work: Callable[[Reporter], T], *, lane: str
) -> T | None:
    """The result, from its slot or computed now, or None if there is none; the page then says why.

    The work runs in another thread while the script waits. Any other click ends the waiting at
    once; the work continues until a later run asks for something else in its lane.
    """
    box = st.empty()  # always, so that the rest of the page keeps its place
    if slot.result is not None:
        return slot.result
    name = slot.name
    _enter(lane, name)
    job: Job[T] | None = jobs.find(name)
    if job is None:
        try:
            job = Job(lambda report: iter([work(report)]), total=1)
            jobs.start(name, job, jobs.foreground)
        except MhaVizError as error:
            problem(str(error))
            return None
    if not job.over.wait(QUICK):
        _block(box, name, job, what)
    if job.state == "stopped":
        with box:
            _stopped(f"Stopped: {what}.", name, jobs.forget)
        return None
    jobs.forget(name)
    if job.state == "failed":
        problem(job.error)
        return None
    slot.result = job.results[0]
    return slot.result


def beside(
    slot: ResultSlot[T], work: Callable[[Reporter], T], *, lane: str, queue: Queue
) -> Job[T] | None:
    """The job that fills the slot while the page is used; None once the slot has its result.

    Starts the job if there is none, and waits for it only if it is quick. A job that was stopped or
    has failed is returned until `jobs.forget` drops it. Raises MhaVizError if the queue is full.
    """
    if slot.result is not None:
        return None
    name = slot.name
    _enter(lane, name)
    job: Job[T] | None = jobs.find(name)
    if job is None:
        job = Job(lambda report: iter([work(report)]), total=1)
        jobs.start(name, job, queue)
        job.over.wait(QUICK)
    if job.state != "done":
        return job
    jobs.forget(name)
    slot.result = job.results[0]
    return None


def was_stopped(slot: ResultSlot[Any]) -> bool:
    """Whether the user stopped the work for this slot; if not, and it is empty, it failed."""
    return jobs.find(slot.name) is not None


def may_start(key: str, multiply_adds: float, label: str, text: str) -> bool:
    """Whether the work under `key` may run now: it is quick, or the user asked for it.

    Otherwise shows the text and a button with that label.
    """
    allowed = st.session_state.setdefault("allowed to start", set())
    if multiply_adds <= MULTIPLY_ADDS or key in allowed:
        return True
    st.markdown(text, help=glossary.help_for(text))
    return st.button(label, on_click=allowed.add, args=(key,), type="primary", key=f"start {label}")


def leave(lane: str) -> None:
    """Stops the job that is still running in a lane; finished results stay."""
    name: str | None = st.session_state.get(f"lane {lane}")
    job = jobs.find(name) if name else None
    if name and job is not None and job.active:
        jobs.forget(name)


def row(job: Job[Any], text: str, *, key: str) -> DeltaGenerator:
    """A progress bar with a text, and a Stop button; returns the bar."""
    bar = st.progress(job.share, text)
    st.button("Stop", on_click=jobs.stop, args=(job,), key=f"stop {key}", icon=":material/stop:")
    return bar


def _enter(lane: str, name: str) -> None:
    if st.session_state.get(f"lane {lane}") != name:
        leave(lane)
    st.session_state[f"lane {lane}"] = name


def _keep(name: str) -> None:
    """Remembers which results were shown last, and drops those not shown for a while."""
    names: list[str] = st.session_state.setdefault("results kept", [])
    if name in names:
        names.remove(name)
    names.append(name)
    while len(names) > KEPT:
        jobs.forget(names.pop(0))


@st.fragment(run_every=TICK)
def _watch(name: str, what: str, drawn: int) -> None:
    """The progress of a job; the whole page runs again when there are more results."""
    job = jobs.find(name)
    if job is None:
        return
    if not job.active or len(job.results) != drawn:
        st.rerun()
    row(job, jobs.status(job, f"{len(job.results)} of {job.total} {what}"), key=name)


def _block(box: DeltaGenerator, name: str, job: Job[Any], what: str) -> None:
    """The progress while the script waits; if the user clicks something, Streamlit ends the run."""
    begun = time.monotonic() - QUICK
    with box.container():
        bar = row(job, f"{what}…", key=name)
    while True:
        queued = " (waiting in the queue)" if job.state == "queued" else ""
        bar.progress(job.share, f"{what}…{queued} {jobs.clock(time.monotonic() - begun)}")
        if job.over.wait(BLOCKING_TICK):
            break
    box.empty()


def _stopped(text: str, name: str, start_again: Callable[[str], None]) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(text, width="content", help=glossary.help_for(text))
        _start_button(name, start_again)


def _start_button(name: str, start_again: Callable[[str], None]) -> None:
    st.button("Start again", on_click=start_again, args=(name,), key=f"restart {name}")


def _start_again(name: str) -> None:
    jobs.forget(name)
    st.session_state[f"again {name}"] = True
