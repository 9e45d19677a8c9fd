"""Long work beside the page: order, turns, pauses, ends, and what happens when a tab is closed."""

import gc
import threading
import time
import weakref
from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace

import pytest
from streamlit.testing.v1 import AppTest
from support.patience import PATIENCE, until

from mha_viz.app.work import jobs
from mha_viz.app.work.jobs import CRASHED, Job, Queue, Reporter, clock, status
from mha_viz.errors import MhaVizError, TextError


@pytest.fixture(autouse=True)
def _an_idle_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "background", Queue())


class Gate:
    """Work that yields 0, 1, 2 …, each only when it is let through."""

    def __init__(self, n: int = 5) -> None:
        self.n = n
        self.permits = threading.Semaphore(0)
        self.running = 0

    def work(self, report: Reporter) -> Iterator[int]:
        for i in range(self.n):
            self.running += 1
            assert self.running == 1, "two workers at once"
            assert self.permits.acquire(timeout=PATIENCE)
            self.running -= 1
            yield i

    def job(self) -> Job[int]:
        return Job(self.work, total=self.n)

    def let(self, n: int = 1) -> None:
        self.permits.release(n)


def test_results_come_in_order_and_the_job_is_done() -> None:
    queue, job = Queue(), Job(lambda report: iter(range(100)), total=100)
    queue.submit(job)
    until(lambda: job.state == "done")
    assert job.results == list(range(100))
    assert job.share == 1
    assert not job.active


def test_jobs_run_in_the_order_of_their_arrival() -> None:
    queue = Queue(workers=2)
    gates = [Gate() for _ in range(4)]
    first, second, third, fourth = (gate.job() for gate in gates)
    for job in (first, second, third, fourth):
        queue.submit(job)
    assert [job.state for job in (first, second, third, fourth)] == ["running"] * 2 + ["queued"] * 2
    assert [queue.position(job) for job in (first, second, third, fourth)] == [0, 0, 1, 2]
    queue.stop(third)
    assert third.state == "stopped"
    assert queue.position(fourth) == 1
    queue.stop(first)
    gates[0].let()
    until(lambda: fourth.state == "running")
    assert first.results == []
    assert queue.position(fourth) == 0
    for gate in (gates[1], gates[3]):
        gate.let(5)
    until(lambda: not second.active and not fourth.active)
    assert second.results == fourth.results == [0, 1, 2, 3, 4]
    assert third.results == []


def test_a_paused_job_gives_its_worker_to_another_and_goes_on_where_it_was() -> None:
    queue = Queue(workers=1)
    gate, other = Gate(), Gate(1)
    job, waiting = gate.job(), other.job()
    queue.submit(job)
    gate.let(2)
    until(lambda: len(job.results) == 2)
    queue.submit(waiting)
    queue.pause(job)
    assert job.state == "paused"
    gate.let()
    until(lambda: waiting.state == "running")
    assert job.results == [0, 1, 2]
    queue.resume(job)
    assert job.state == "queued"
    other.let()
    until(lambda: job.state == "running")
    gate.let(2)
    until(lambda: job.state == "done")
    assert job.results == [0, 1, 2, 3, 4]


def test_pausing_and_resuming_at_any_moment_loses_and_doubles_nothing() -> None:
    def count(report: Reporter) -> Iterator[int]:
        for i in range(3_000):
            if i % 50 == 0:
                time.sleep(0.001)
            yield i

    queue, job = Queue(workers=2), Job(count, total=3_000)
    queue.submit(job)
    while job.active:
        queue.pause(job)
        queue.resume(job)
    assert job.state == "done"
    assert job.results == list(range(3_000))


def test_a_job_resumed_while_its_worker_lets_go_is_taken_up_again() -> None:
    class Slow(Job[int]):
        def _collect(self) -> None:
            super()._collect()
            let_go.set()
            assert resumed.wait(timeout=PATIENCE)

    let_go, resumed = threading.Event(), threading.Event()
    queue, gate = Queue(workers=1), Gate(3)
    job = Slow(gate.work, total=3)
    queue.submit(job)
    queue.pause(job)
    gate.let()
    assert let_go.wait(timeout=PATIENCE)
    queue.resume(job)
    resumed.set()
    gate.let(2)
    until(lambda: job.state == "done")
    assert job.results == [0, 1, 2]


def test_a_stopped_job_cannot_be_paused_or_resumed() -> None:
    queue, gate = Queue(), Gate()
    job = gate.job()
    queue.submit(job)
    queue.stop(job)
    queue.resume(job)
    queue.pause(job)
    assert job.state == "stopped"
    gate.let(5)
    until(lambda: not queue._running)
    assert job.results == []


@pytest.mark.parametrize("when", ["running", "paused", "queued"])
def test_a_stopped_job_frees_the_objects_that_its_work_holds(when: str) -> None:
    class Model:
        pass

    def work(model: Model, report: Reporter) -> Iterator[int]:
        yield from range(10)
        time.sleep(0.01)
        yield id(model)

    queue, gate = Queue(workers=1), Gate(1)
    if when == "queued":
        queue.submit(gate.job())
    model = Model()
    alive = weakref.ref(model)
    job = Job(partial(work, model), total=11)
    del model
    queue.submit(job)
    if when == "paused":
        queue.pause(job)
    queue.stop(job)
    gc.collect()
    until(lambda: alive() is None)
    gate.let()


def test_a_failed_job_shows_its_message_and_keeps_its_results() -> None:
    def work(report: Reporter) -> Iterator[int]:
        yield 1
        raise TextError("The text is too short. Give a longer one.")

    queue, job = Queue(), Job(work, total=2)
    queue.submit(job)
    until(lambda: job.state == "failed")
    assert job.error == "The text is too short. Give a longer one."
    assert job.results == [1]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_unforeseen_error_ends_the_job_with_a_message_and_the_queue_goes_on() -> None:
    def work(report: Reporter) -> Iterator[int]:
        yield 1
        raise RuntimeError("secret")

    before = set(threading.enumerate())
    queue, job = Queue(workers=1), Job(work, total=2)
    queue.submit(job)
    until(lambda: job.state == "failed")
    assert job.error == CRASHED
    after = Job(lambda report: iter([1]), total=1)
    queue.submit(after)
    until(lambda: after.state == "done")
    for worker in set(threading.enumerate()) - before:
        worker.join(PATIENCE)  # so that its exception is reported while this test expects it


def test_a_full_queue_rejects_a_job_with_a_message() -> None:
    queue, gates = Queue(workers=1, most_waiting=2), [Gate(1) for _ in range(4)]
    for gate in gates[:3]:
        queue.submit(gate.job())
    with pytest.raises(MhaVizError, match="2 computations are already waiting"):
        queue.submit(gates[3].job())
    for gate in gates:
        gate.let()


def test_a_pause_counts_as_no_work() -> None:
    queue, gate = Queue(), Gate(4)
    job = gate.job()
    assert job.seconds_left is None
    queue.submit(job)
    gate.let()
    until(lambda: len(job.results) == 1)
    queue.pause(job)
    gate.let()
    until(lambda: len(job.results) == 2 and job._since is None)
    spent, begun = job.seconds, time.monotonic()
    time.sleep(0.3)
    paused = time.monotonic() - begun
    queue.resume(job)
    gate.let(2)
    until(lambda: job.state == "done")
    assert job.seconds - spent <= time.monotonic() - begun - paused
    assert job.seconds_left == 0


def test_a_closed_tab_stops_its_jobs_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "GRACE", 0.05)
    gate = Gate()
    job = gate.job()
    jobs.background.submit(job)
    jobs.release({"training": job})
    until(lambda: job.state == "stopped")
    gate.let()


def test_a_job_belongs_to_its_session_as_soon_as_it_starts() -> None:
    def script() -> None:
        from mha_viz.app.work import jobs

        jobs.start("at once", jobs.Job(lambda report: iter([1]), total=1), jobs.foreground)
        assert "at once" in jobs._lease()

    assert not AppTest.from_function(script, default_timeout=PATIENCE).run().exception


def test_a_lost_connection_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "GRACE", 10 * PATIENCE)
    gate = Gate(1)
    job = gate.job()
    jobs.background.submit(job)
    jobs.release({"training": job})
    waiting = [one for one in threading.enumerate() if isinstance(one, threading.Timer)]
    (timer,) = [one for one in waiting if job in one.args]
    timer.cancel()
    job.seen = time.monotonic()  # the page runs again
    timer.function(*timer.args)  # as if the grace had passed
    assert job.state == "running"
    gate.let()
    until(lambda: job.state == "done")


def test_the_status_line_names_the_state_the_time_and_the_time_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(jobs, "time", SimpleNamespace(monotonic=lambda: 100.0))  # it stands still
    queue = jobs.background
    gates = [Gate(2) for _ in range(jobs.WORKERS + 2)]
    mine = [gate.job() for gate in gates]
    for job in mine:
        queue.submit(job)
    assert status(mine[-1], "0 steps") == "Queued, position 2"
    assert "starting" in status(mine[0], "0 of 2 steps")
    gates[0].let()
    until(lambda: len(mine[0].results) == 1)
    assert status(mine[0], "1 of 2 steps").startswith("1 of 2 steps · 0 s, about 0 s left")
    for job in mine:
        queue.stop(job)
    assert status(mine[0], "1 of 2 steps") == "Stopped: 1 of 2 steps · 0 s"
    for gate in gates:
        gate.let(2)
    assert [clock(s) for s in (0.4, 99.4, 100, 725)] == ["0 s", "99 s", "1:40 min", "12:05 min"]


def test_an_ending_server_stops_the_jobs_of_every_queue() -> None:
    def work(report: Reporter) -> Iterator[int]:
        while True:
            report(0.5)
            time.sleep(0.001)
            yield from ()

    queues = [Queue(workers=1), Queue(workers=1)]
    running = [Job(work, total=1) for _ in queues]
    waiting = Job(work, total=1)
    for queue, job in zip(queues, running, strict=True):
        queue.submit(job)
    queues[0].submit(waiting)
    jobs.stop_all(patience=PATIENCE)
    assert [job.state for job in (*running, waiting)] == ["stopped"] * 3
    assert not any(queue._running for queue in queues)
