"""The trace that a page needs: the wait can be stopped, and the result is shared by all users."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from support.patience import PATIENCE, until
from support.script import button, component, opened, said

from mha_viz.app.work import jobs
from mha_viz.app.work.progress import Halt
from mha_viz.model import Model


class SlowTraces:
    """Stands in for `Model.trace`: each trace takes until it is let go, and `ends` says how."""

    def __init__(self, trace: Callable[..., Any]) -> None:
        self.trace = trace
        self.begun, self.let_go = threading.Event(), threading.Event()
        self.ends: list[str] = []

    def __call__(
        self, model: Model, text: str, *, on_layer: Callable[[int], None], **options: Any
    ) -> Any:
        self.begun.set()
        try:
            while not self.let_go.wait(0.02):
                on_layer(1)
        except Halt:
            self.ends.append("halted")
            raise
        self.ends.append("done")
        return self.trace(model, text, **options)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> SlowTraces:
    """Traces that wait."""
    traces = SlowTraces(Model.trace)
    monkeypatch.setattr(Model, "trace", lambda *given, **options: traces(*given, **options))
    return traces


def stop_when_begun(slow: SlowTraces) -> None:
    """Stops all work before the page, as a click on Stop does."""
    slow.begun.wait(PATIENCE)
    for job in list(jobs.foreground._running):
        jobs.foreground.stop(job)


def test_a_stopped_trace_says_so_ends_and_starts_again(slow: SlowTraces) -> None:
    threading.Thread(target=stop_when_begun, args=(slow,), daemon=True).start()
    test = opened("attention", text="a text that nobody has typed before")
    assert not test.exception
    assert "Stopped: Running the model." in " ".join(one.value for one in test.caption)
    assert test.text_area(key="text").value == "a text that nobody has typed before"
    until(lambda: slow.ends)  # at its next report
    assert slow.ends == ["halted"]
    slow.let_go.set()
    test = button(test, "Start again").click().run()
    assert slow.ends == ["halted", "done"]
    assert component(test, "strip")["tokens"][0][0] == "a"
    assert "Stopped" not in " ".join(one.value for one in test.caption)


def test_a_result_is_shared_by_all_users(slow: SlowTraces) -> None:
    slow.let_go.set()
    for _ in range(2):
        opened("attention", text="a text that two users look at")
    assert slow.ends == ["done"]


def test_every_user_sees_why_a_job_failed() -> None:
    for _ in range(2):
        test = opened("attention", model="./nowhere")
        assert "There is no folder ./nowhere" in said(test)
        assert component(test, "strip")["n_layers"] == 4  # the bundled model meanwhile
