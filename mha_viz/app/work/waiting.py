"""Work that a page cannot do without: shown while it goes on, stopped at will, kept for everybody.

It runs beside the script, which waits for it. Any other choice of the visitor ends the waiting at
once; the work goes on until the next run asks for something else in its slot.
"""

import time
from collections.abc import Callable, Hashable, Iterator
from functools import lru_cache
from itertools import count
from typing import Generic, TypeVar

import streamlit as st

from mha_viz.app.messages import problem
from mha_viz.app.work import jobs
from mha_viz.app.work.jobs import Job
from mha_viz.app.work.progress import QUICK, Reporter, begin, leave, stop
from mha_viz.errors import MhaVizError

R = TypeVar("R")
TICK = 0.2  # seconds between two looks at the work
_numbers = count()


class ResultSlot(Generic[R]):
    """Where a result is kept, once the work of some visitor has made it."""

    def __init__(self) -> None:
        self.result: R | None = None
        self.name = f"slot {next(_numbers)}"


class ResultSlots(Generic[R]):
    """A slot for each key that is asked for; of more than `most`, the oldest is let go."""

    def __init__(self, most: int) -> None:
        self._slot = lru_cache(most)(lambda key: ResultSlot[R]())

    def __call__(self, *key: Hashable) -> ResultSlot[R]:
        """The slot of that key."""
        return self._slot(key)


def wait_for(
    slot: ResultSlot[R], what: str, work: Callable[[Reporter], R], *, lane: str
) -> R | None:
    """The result, from its slot or made now; None after the page has said why there is none.

    The `work` tells how far it is, and calls nothing of Streamlit. A `lane` holds one piece of
    work of a visitor: what still runs there for another slot is stopped.
    """
    box = st.empty()  # always, so that what follows has its place on the page
    if slot.result is not None:
        return slot.result
    name = slot.name
    leave(lane, unless=name)
    st.session_state[f"lane {lane}"] = name
    job: Job[R] | None = jobs.mine(name)
    if job is None:
        try:
            job = begin(name, lambda report: _once(work, report), 1, jobs.pages)
        except MhaVizError as error:
            problem(str(error))
            return None
    if not job.over.wait(QUICK):
        _watch(box, name, job, what)
    if job.state == "stopped":
        with box.container(horizontal=True, vertical_alignment="center"):
            st.caption(f"Stopped: {what}.", width="content")
            st.button("Start again", on_click=jobs.forget, args=(name,), key=f"restart {name}")
        return None
    jobs.forget(name)
    del st.session_state[f"told {name}"]
    if job.state == "failed":
        problem(job.error)
        return None
    slot.result = job.results[0]
    return slot.result


def _once(work: Callable[[Reporter], R], report: Reporter) -> Iterator[R]:
    yield work(report)


def _watch(box: st.delta_generator.DeltaGenerator, name: str, job: Job[R], what: str) -> None:
    report: Reporter = st.session_state[f"told {name}"]
    begun = time.monotonic() - QUICK
    with box.container():
        bar = st.progress(0.0, f"{what}…")
        st.button("Stop", on_click=stop, args=(name,), key=f"stop {name}", icon=":material/stop:")
    while True:
        # Where the visitor chose something else meanwhile, Streamlit ends the run here.
        spent = jobs.clock(time.monotonic() - begun)
        waits = "" if job.state == "running" else ", after what others have asked for"
        bar.progress(min(report.share, 1.0), f"{what}{waits}… {spent}")
        if job.over.wait(TICK):
            break
    box.empty()
