"""Long work beside the page: it can be watched, paused and stopped, and its results are kept.

A job's work is a generator, and each item that it yields is a result. Between two results the work
can be halted, so that a paused job holds no worker; and it calls nothing of Streamlit. A page
starts a job under a name, and at each run asks for it by that name:

    jobs.start("curve", Job(measure(texts), total=len(texts)))
    job = jobs.mine("curve")

The job lives in the visitor's session, and stops some time after that was closed.
"""

import atexit
import threading
import time
from collections import deque
from collections.abc import Iterator
from typing import Any, Generic, Literal, TypeVar

import streamlit as st

from mha_viz.errors import MhaVizError

T = TypeVar("T")
State = Literal["queued", "running", "paused", "stopped", "failed", "done"]
WORKERS = 2  # computations at once, for all visitors together
MOST_WAITING = 16
PATIENCE = 5.0  # seconds that an ending server waits for its workers
GRACE = 30.0  # seconds after which nobody comes back to a closed tab
PREFIX = "job "  # of a job's name in a session
LOST = "The computation ended without a word; the server's log may say why. Start it again."


class Job(Generic[T]):
    """One piece of work. A worker writes to it, any page reads it; a `Queue` runs it.

    `work` yields `total` results. `results` only ever grows.
    """

    def __init__(self, work: Iterator[T], *, total: int) -> None:
        self.total = total
        self.results: list[T] = []
        self.state: State = "queued"
        self.error = ""
        self.seconds = 0.0  # of work for the results, without waiting and pauses
        self._since: float | None = None  # when the work for the next one began
        self.seen = time.monotonic()  # when its visitor was last here
        self.over = threading.Event()  # no more results come
        self.queue: Queue | None = None
        self._work = work
        self._held = False  # by a worker

    @property
    def active(self) -> bool:
        """Whether more results may come."""
        return self.state in ("queued", "running", "paused")

    @property
    def share(self) -> float:
        """How much is done, from 0 to 1."""
        return min(len(self.results) / max(self.total, 1), 1.0)

    @property
    def spent(self) -> float:
        """Seconds of work until now."""
        since = self._since
        return self.seconds + (0.0 if since is None else time.monotonic() - since)

    @property
    def seconds_left(self) -> float | None:
        """The work that is left at the pace so far; None while there is none."""
        return self.seconds * (1 / self.share - 1) if self.results else None

    def _go_on(self) -> None:
        """Adds results until the work is done or somebody else has changed the state."""
        self._since = begun = time.monotonic()
        for result in self._work:
            now = time.monotonic()
            if self.state == "stopped":
                return
            self.seconds += now - begun
            self.results.append(result)
            self._since = begun = now
            if self.state != "running":
                return
        if self.state == "running":
            self.state = "done"


class Queue:
    """Runs jobs in the order in which they came, a few at once, in threads of their own."""

    def __init__(self, workers: int = WORKERS, most_waiting: int = MOST_WAITING) -> None:
        self._free = workers
        self._most_waiting = most_waiting
        self._waiting: deque[Job[Any]] = deque()
        self._running: set[Job[Any]] = set()
        self._guard = threading.RLock()

    def submit(self, job: Job[Any]) -> None:
        """Starts the job, or lets it wait. Raises MhaVizError where too many wait already."""
        with self._guard:
            if len(self._waiting) >= self._most_waiting:
                raise MhaVizError(
                    f"{len(self._waiting)} computations are waiting already. Try again in a minute."
                )
            job.queue = self
            self._enqueue(job)

    def position(self, job: Job[Any]) -> int:
        """How many jobs start before this one does, itself included; 0 where it does not wait."""
        with self._guard:
            return self._waiting.index(job) + 1 if job in self._waiting else 0

    def pause(self, job: Job[Any]) -> None:
        """Halts the job after the result it is at; its worker takes another one."""
        self._halt(job, "paused")

    def stop(self, job: Job[Any]) -> None:
        """Ends the job; what it found until now is kept, and the result it is at is not."""
        self._halt(job, "stopped")

    def resume(self, job: Job[Any]) -> None:
        """Lets a paused job go on, behind those that wait."""
        with self._guard:
            if job.state == "paused":
                self._enqueue(job)

    def close(self) -> None:
        """Stops everything, and waits a while for what is under way: the server ends."""
        with self._guard:
            for job in (*self._waiting, *self._running):
                self._halt(job, "stopped")
        end = time.monotonic() + PATIENCE
        while self._running and time.monotonic() < end:
            time.sleep(0.02)

    def _halt(self, job: Job[Any], state: State) -> None:
        with self._guard:
            if job.active:
                job.state = state
                if job in self._waiting:
                    self._waiting.remove(job)
                self._let_go(job)

    def _enqueue(self, job: Job[Any]) -> None:
        if job._held:  # resumed before its worker saw that it was paused
            job.state = "running"
            return
        job.state = "queued"
        self._waiting.append(job)
        self._fill()

    def _fill(self) -> None:
        while self._free and self._waiting:
            job = self._waiting.popleft()
            job.state, job._held = "running", True
            self._running.add(job)
            self._free -= 1
            threading.Thread(target=self._run, args=(job,), daemon=True).start()

    def _run(self, job: Job[Any]) -> None:
        error = LOST
        try:
            job._go_on()
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
                self._let_go(job)
                self._fill()

    def _let_go(self, job: Job[Any]) -> None:
        """Tells those who wait that it is over, and frees what the work holds in memory."""
        if not job.active:
            job.over.set()
            if not job._held:
                job._work = iter(())


queue = Queue()
pages = Queue()  # for what a page cannot do without: it never waits for work beside the pages
for one in (queue, pages):
    atexit.register(one.close)  # torch ends the whole process where a thread is cut off within it


def start(name: str, job: Job[Any], to: Queue | None = None) -> None:
    """Gives the job to the queue, or to another one, and to this session under a name.

    One that ran under that name is stopped. Raises MhaVizError where too many
    jobs wait already.
    """
    (to or queue).submit(job)
    before = st.session_state.get(_key(name))
    if before is not None:
        stop(before)
    st.session_state[_key(name)] = job
    mine(name)  # so that it ends with the session, even within this run


def stop(job: Job[Any]) -> None:
    """Ends the job, in whichever queue it is."""
    if job.queue is not None:
        job.queue.stop(job)


def mine(name: str) -> Job[Any] | None:
    """The job of that name in this session, if any; to ask for it says that its visitor is here."""
    job: Job[Any] | None = st.session_state.get(_key(name))
    if job is not None:
        job.seen = time.monotonic()
        _lease()[name] = job
    return job


def here() -> None:
    """Says that the visitor is on some page: none of the jobs is abandoned meanwhile."""
    for key in list(st.session_state):
        if isinstance(key, str) and key.startswith(PREFIX):
            mine(key.removeprefix(PREFIX))


def forget(name: str) -> None:
    """Stops the job of that name in this session, and lets go of what it found."""
    job = st.session_state.pop(_key(name), None)
    _lease().pop(name, None)
    if job is not None:
        stop(job)


def told(job: Job[Any], what: str) -> str:
    """How it stands, in words: `what` names the progress, as in "200 of 5,000 steps"."""
    if job.state == "queued" and job.queue is not None:
        return f"Queued, position {job.queue.position(job)}"
    left = job.seconds_left
    spent = f"{what} · {clock(job.spent)}"
    if job.state == "running":
        return f"{spent}, about {clock(left)} left" if left is not None else f"{spent}, starting"
    return f"{job.state.capitalize()}: {spent}"


def clock(seconds: float) -> str:
    """Seconds, or minutes and seconds."""
    whole = round(seconds)
    return f"{whole} s" if whole < 100 else f"{whole // 60}:{whole % 60:02d} min"


def leave(held: dict[str, Job[Any]]) -> None:
    """Stops the jobs of a session after a while, unless its visitor was seen meanwhile.

    A lost connection comes here as a closed tab does, but the visitor is back within seconds.
    """
    for job in held.values():
        if job.active:
            timer = threading.Timer(GRACE, _abandon, (job, job.seen))
            timer.daemon = True
            timer.start()


def _abandon(job: Job[Any], last_seen: float) -> None:
    if job.seen == last_seen:
        stop(job)


@st.cache_resource(scope="session", on_release=leave, show_spinner=False)
def _lease() -> dict[str, Job[Any]]:
    """What Streamlit lets go of when the session's tab is closed or loses its connection."""
    return {}


def _key(name: str) -> str:
    return f"{PREFIX}{name}"
