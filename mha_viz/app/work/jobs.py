"""Jobs: long-running work in a thread of its own that can be watched, paused and stopped.

The work is a function that gets a reporter and yields results:

    def work(report: Reporter) -> Iterator[float]:
        for text in texts:
            yield measure(text, on_progress=report)

It must not call Streamlit. A pause takes effect between two results, so a paused job holds no
worker; a stop also takes effect in `report`, in the middle of a result. A job belongs to the
session that started it, under a name, and stops a while after that session is closed. `progress`
shows jobs on a page.
"""

import atexit
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Generic, Literal, TypeVar
from weakref import WeakSet

import streamlit as st

from mha_viz.errors import MhaVizError

T = TypeVar("T")
State = Literal["queued", "running", "paused", "stopped", "failed", "done"]
Reporter = Callable[[float], None]  # takes the fraction of the next result; may raise Halt
WORKERS = 2  # jobs that a queue runs at once, for all users together
MAX_WAITING = 16
PATIENCE = 5.0  # seconds that the server waits for its workers when it shuts down
GRACE = 30.0  # seconds that a job continues after its tab was closed
PREFIX = "job "  # of a job's key in the session state
CRASHED = (
    "The computation stopped unexpectedly. Start it again; if that fails, check the server log."
)


class Halt(Exception):
    """The job was stopped in the middle of a result."""


class Job(Generic[T]):
    """One piece of work. A worker writes to it, any page reads it; a `Queue` runs it.

    `work` yields `total` results. `results` only ever grows.
    """

    crashed = CRASHED

    def __init__(self, work: Callable[[Reporter], Iterator[T]], *, total: int) -> None:
        self.total = total
        self.results: list[T] = []
        self.fraction = 0.0  # of the next result that is done
        self.state: State = "queued"
        self.error = ""
        self.seconds = 0.0  # of work for the results, without queueing and pauses
        self._since: float | None = None  # when the work for the next one began
        self.seen = time.monotonic()  # when its user was last here
        self.over = threading.Event()  # no more results come
        self.queue: Queue | None = None
        self._coming = _from(work, self.report)
        self._held = False  # by a worker

    @property
    def active(self) -> bool:
        """Whether more results may come."""
        return self.state in ("queued", "running", "paused")

    @property
    def share(self) -> float:
        """How much is done, from 0 to 1."""
        return min((len(self.results) + self.fraction) / max(self.total, 1), 1.0)

    @property
    def spent(self) -> float:
        """Seconds of work until now."""
        since = self._since
        return self.seconds + (0.0 if since is None else time.monotonic() - since)

    @property
    def seconds_left(self) -> float | None:
        """Seconds of work left at the pace of the results so far; None before the first."""
        n = len(self.results)
        return self.seconds * max(self.total - n, 0) / n if n else None

    def report(self, fraction: float) -> None:
        """Takes the fraction of the next result that is done. Raises Halt after a stop."""
        if self.state == "stopped":
            raise Halt
        self.fraction = fraction

    def _collect(self) -> None:
        """Adds results until the work is done or another thread has changed the state."""
        self._since = begun = time.monotonic()
        for result in self._coming:
            now = time.monotonic()
            if self.state == "stopped":
                return
            self.seconds += now - begun
            self.fraction = 0.0
            self.results.append(result)
            self._since = begun = now
            if self.state != "running":
                return
        if self.state == "running":
            self.state = "done"


def _from(work: Callable[[Reporter], Iterator[T]], report: Reporter) -> Iterator[T]:
    """The results of the work, which begins when the first one is asked for."""
    try:
        yield from work(report)
    except Halt:
        return


class Queue:
    """Runs jobs in the order in which they came, a few at once, each in its own thread."""

    def __init__(self, workers: int = WORKERS, most_waiting: int = MAX_WAITING) -> None:
        self._free = workers
        self._most_waiting = most_waiting
        self._waiting: deque[Job[Any]] = deque()
        self._running: set[Job[Any]] = set()
        self._guard = threading.RLock()
        _queues.add(self)

    def submit(self, job: Job[Any]) -> None:
        """Starts the job, or lets it wait. Raises MhaVizError if too many are already waiting."""
        with self._guard:
            if len(self._waiting) >= self._most_waiting:
                raise MhaVizError(
                    f"{len(self._waiting)} computations are already waiting. Try again in a minute."
                )
            job.queue = self
            self._enqueue(job)

    @property
    def busy(self) -> bool:
        """Whether a job is running."""
        return bool(self._running)

    def position(self, job: Job[Any]) -> int:
        """The place of the job in the queue, counted from 1; 0 if it is not waiting."""
        with self._guard:
            return self._waiting.index(job) + 1 if job in self._waiting else 0

    def pause(self, job: Job[Any]) -> None:
        """Halts the job after its current result; its worker takes another job."""
        self._halt(job, "paused")

    def stop(self, job: Job[Any]) -> None:
        """Ends the job and keeps its results so far, without the unfinished one."""
        self._halt(job, "stopped")

    def resume(self, job: Job[Any]) -> None:
        """Lets a paused job continue, after those already waiting."""
        with self._guard:
            if job.state == "paused":
                self._enqueue(job)

    def _halt(self, job: Job[Any], state: State) -> None:
        with self._guard:
            if job.active:
                job.state = state
                if job in self._waiting:
                    self._waiting.remove(job)
                self._settle(job)

    def _enqueue(self, job: Job[Any]) -> None:
        if job._held:  # resumed before its worker saw that it was paused
            job.state = "running"
            return
        job.state = "queued"
        self._waiting.append(job)
        self._start_waiting()

    def _start_waiting(self) -> None:
        while self._free and self._waiting:
            job = self._waiting.popleft()
            job.state, job._held = "running", True
            self._running.add(job)
            self._free -= 1
            threading.Thread(target=self._run, args=(job,), daemon=True).start()

    def _run(self, job: Job[Any]) -> None:
        error = job.crashed
        try:
            job._collect()
            error = ""
        except MhaVizError as refused:
            error = str(refused)
        finally:
            with self._guard:
                job._held, job._since = False, None
                self._running.discard(job)
                self._free += 1
                if error:
                    job.error, job.state = error, "failed"
                elif job.state == "running":  # resumed just after its worker let go
                    self._enqueue(job)
                self._settle(job)
                self._start_waiting()

    def _settle(self, job: Job[Any]) -> None:
        """If the job is over, wakes the threads that wait for it and frees its memory."""
        if not job.active:
            job.over.set()
            if not job._held:
                job._coming = iter(())


_queues: WeakSet[Queue] = WeakSet()
background = Queue()  # for results that a page shows as they come
foreground = Queue()  # for results that a page needs at once; never waits for background work


@atexit.register  # torch aborts the process if a thread is cut off inside it
def stop_all(patience: float = PATIENCE) -> None:
    """Stops the jobs of all queues, and waits at most `patience` seconds for the running ones."""
    end = time.monotonic() + patience
    for queue in list(_queues):
        for job in (*queue._waiting, *queue._running):
            queue.stop(job)
    while any(queue._running for queue in list(_queues)) and time.monotonic() < end:
        time.sleep(0.02)


def start(name: str, job: Job[Any], to: Queue | None = None) -> None:
    """Submits the job to a queue, the background by default, and names it in this session.

    Stops the job that had that name. Raises MhaVizError if too many jobs are already waiting.
    """
    (to or background).submit(job)
    before = st.session_state.get(_key(name))
    if before is not None:
        stop(before)
    st.session_state[_key(name)] = job
    find(name)  # so that it ends with the session, even within this run


def stop(job: Job[Any]) -> None:
    """Ends the job, in whichever queue it is."""
    if job.queue is not None:
        job.queue.stop(job)


def find(name: str) -> Job[Any] | None:
    """The job of that name in this session, if any; asking for it keeps it alive."""
    job: Job[Any] | None = st.session_state.get(_key(name))
    if job is not None:
        job.seen = time.monotonic()
        _lease()[name] = job
    return job


def keep_alive() -> None:
    """Keeps all jobs of this session alive: its user is on some page."""
    for key in list(st.session_state):
        if isinstance(key, str) and key.startswith(PREFIX):
            find(key.removeprefix(PREFIX))


def forget(name: str) -> None:
    """Stops the job of that name in this session and drops its results."""
    job = st.session_state.pop(_key(name), None)
    _lease().pop(name, None)
    if job is not None:
        stop(job)


def status(job: Job[Any], done: str) -> str:
    """The job's state and times as text; `done` says how far it is: "200 of 5,000 steps"."""
    if job.state == "queued" and job.queue is not None:
        return f"Queued, position {job.queue.position(job)}"
    left = job.seconds_left
    spent = f"{done} · {clock(job.spent)}"
    if job.state == "running":
        return f"{spent}, about {clock(left)} left" if left is not None else f"{spent}, starting"
    return f"{job.state.capitalize()}: {spent}"


def clock(seconds: float) -> str:
    """Seconds, or minutes and seconds, as text."""
    whole = round(seconds)
    return f"{whole} s" if whole < 100 else f"{whole // 60}:{whole % 60:02d} min"


def release(held: dict[str, Job[Any]]) -> None:
    """Stops the jobs of a closed session after a while, unless its user comes back.

    A lost connection looks like a closed tab here, but its user is back within seconds.
    """
    for job in held.values():
        if job.active:
            timer = threading.Timer(GRACE, _abandon, (job, job.seen))
            timer.daemon = True
            timer.start()


def _abandon(job: Job[Any], last_seen: float) -> None:
    if job.seen == last_seen:
        stop(job)


@st.cache_resource(scope="session", on_release=release, show_spinner=False)
def _lease() -> dict[str, Job[Any]]:
    """Streamlit releases it when the session's tab is closed or loses its connection."""
    return {}


def _key(name: str) -> str:
    return f"{PREFIX}{name}"
