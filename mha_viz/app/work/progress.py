"""Results of long work on a page: quick work is simply there, long work shows how far it is.

What a job has found so far is drawn as it comes; it can be stopped, and what was found stays.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import streamlit as st

from mha_viz.app.messages import problem
from mha_viz.app.work import jobs
from mha_viz.app.work.jobs import Job, Queue
from mha_viz.errors import MhaVizError

T = TypeVar("T")
QUICK = 0.5  # seconds that a page waits for work before it shows progress
MULTIPLY_ADDS = 3e11  # that start without being asked: seconds on one core
TICK = 0.6  # seconds between two looks at it
KEPT = 32  # results of a visitor; of more, the oldest are computed again when they are asked for


class Halt(Exception):
    """The visitor stopped the work in the middle of a result."""


@dataclass
class Reporter:
    """What the work tells between two results: how much of the next one is done."""

    share: float = 0.0
    job: Job[Any] | None = None

    def __call__(self, share: float) -> None:
        """Takes the share; raises Halt where somebody has stopped the work."""
        if self.job is not None and self.job.state == "stopped":
            raise Halt
        self.share = share


Work = Callable[[Reporter], Iterator[T]]


def results(
    name: str, work: Work[T], *, total: int, what: str, cost: str = "", lane: str = ""
) -> tuple[list[T], bool]:
    """What the job of that name has found, and whether it is over.

    A `lane` holds one job at a time: one that still runs there under another name is stopped.

    A job that is not there yet is started: at once, or, where `cost` says what it takes, when the
    visitor presses a button. `what` names its results ("texts"). A failure is said on the page.
    """
    if lane:
        leave(lane, unless=name)
        st.session_state[f"lane {lane}"] = name
    job: Job[T] | None = jobs.mine(name)
    _keep(name)
    if job is None:
        again = st.session_state.pop(f"again {name}", False)
        if cost and not again and not st.button("Measure", key=f"start {name}", help=cost):
            st.caption(cost)
            return [], False
        try:
            job = begin(name, work, total)
        except MhaVizError as error:
            problem(str(error))
            return [], False
        _wait(job)
    if job.active:
        _watch(name, what, len(job.results))
    elif job.state == "stopped":
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(f"Stopped after {len(job.results)} of {job.total} {what}.", width="content")
            st.button("Start again", on_click=_forget, args=(name,), key=f"restart {name}")
    elif job.state == "failed":
        problem(job.error)
        st.button("Start again", on_click=_forget, args=(name,), key=f"restart {name}")
    return list(job.results), not job.active


def _keep(name: str) -> None:
    """Remembers which results were looked at last, and lets go of what nobody looks at any more."""
    names: list[str] = st.session_state.setdefault("results kept", [])
    if name in names:
        names.remove(name)
    names.append(name)
    while len(names) > KEPT:
        oldest = names.pop(0)
        jobs.forget(oldest)
        st.session_state.pop(f"told {oldest}", None)


def leave(lane: str, *, unless: str = "") -> None:
    """Stops what still runs in a lane, since nobody looks at it; what is finished stays."""
    before = st.session_state.get(f"lane {lane}")
    if before is None or before == unless:
        return
    job = jobs.mine(before)
    if job is not None and job.active:
        stop(before)
        jobs.forget(before)


def may_start(key: str, multiply_adds: float, label: str, words: str) -> bool:
    """Whether the work under `key` may run now: it is quick, or the visitor asked for it."""
    asked = st.session_state.setdefault("asked_for", set())
    if multiply_adds <= MULTIPLY_ADDS or key in asked:
        return True
    st.markdown(words)
    return st.button(label, on_click=asked.add, args=(key,), type="primary", key=f"start {label}")


def begin(name: str, work: Work[T], total: int, to: Queue | None = None) -> Job[T]:
    """A new job of that name. Raises MhaVizError where too many wait already."""
    report = Reporter()
    report.job = job = Job(_until_halted(work, report), total=total)
    st.session_state[f"told {name}"] = report
    jobs.start(name, job, to)
    return job


def _until_halted(work: Work[T], report: Reporter) -> Iterator[T]:
    try:
        for result in work(report):
            report.share = 0.0
            yield result
    except Halt:
        return


def _wait(job: Job[T]) -> None:
    end = time.monotonic() + QUICK
    while job.active and time.monotonic() < end:
        time.sleep(0.01)


@st.fragment(run_every=TICK)
def _watch(name: str, what: str, drawn: int) -> None:
    job = jobs.mine(name)
    if job is None:
        return
    if not job.active or len(job.results) != drawn:
        st.rerun()
    report: Reporter = st.session_state[f"told {name}"]
    share = min(1.0, (len(job.results) + report.share) / max(job.total, 1))
    st.progress(share, jobs.told(job, f"{len(job.results)} of {job.total} {what}"))
    st.button("Stop", on_click=stop, args=(name,), key=f"stop {name}", icon=":material/stop:")


def stop(name: str) -> None:
    """Stops the job of that name; what it found stays."""
    job = jobs.mine(name)
    if job is not None:
        jobs.stop(job)


def _forget(name: str) -> None:
    jobs.forget(name)
    st.session_state[f"again {name}"] = True
