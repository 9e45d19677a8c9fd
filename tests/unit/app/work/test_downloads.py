"""Downloads of models: one per model for all users, with progress, a stop and a clear end."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest
from support.patience import PATIENCE, until
from support.script import button, said

from mha_viz.app.work import downloads
from mha_viz.checkpoints import hub
from mha_viz.errors import Cancelled, SourceError

NAME = "some/model"


class Hub:
    """A stand-in for the client of the Hub: a download that ends when a test lets it."""

    def __init__(self) -> None:
        self.fetches = 0
        self.error: Exception | None = None
        self.finish = threading.Event()

    def fetch(
        self, name: str, *, on_progress: Callable[[Any], None], cancel: threading.Event
    ) -> None:
        self.fetches += 1
        on_progress(hub.Progress(3_000_000, 10_000_000, "model.safetensors"))
        while not self.finish.is_set():
            if cancel.wait(0.01):
                raise Cancelled("stopped")
        if self.error is not None:
            raise self.error


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    server = Hub()
    monkeypatch.setattr(hub, "fetch", server.fetch)
    monkeypatch.setattr(downloads, "_downloads", {})
    yield server
    server.finish.set()


def page() -> AppTest:
    def script() -> None:
        from mha_viz.app.work import downloads

        downloads.offer("some/model")

    return AppTest.from_function(script, default_timeout=PATIENCE).run()


def running() -> downloads.Download:
    job = downloads.running(NAME)
    assert job is not None
    return job


def test_a_download_starts_on_a_click_and_shows_how_much_has_arrived(server: Hub) -> None:
    test = page()
    assert "some/model** is not on this machine yet" in said(test)
    assert server.fetches == 0
    test = button(test, "Download").click().run()
    until(lambda: running().arrived.done > 0)
    test.run()
    assert "3 of 10 MB" in test.get("progress")[0].proto.text
    assert running().share == pytest.approx(0.3)


def test_two_users_share_one_download(server: Hub) -> None:
    first, second = page(), page()
    button(first, "Download").click().run()
    second.run()
    assert [one.label for one in second.button] == ["Stop"]
    until(lambda: server.fetches)
    assert server.fetches == 1


def test_a_stopped_download_can_be_tried_again(server: Hub) -> None:
    test = button(page(), "Download").click().run()
    until(lambda: running().arrived.done > 0)
    job = running()
    test = button(test, "Stop").click().run()
    assert job.state == "stopped"
    assert "The part already downloaded is kept" in said(test)
    test = button(test, "Try again").click().run()
    until(lambda: server.fetches == 2)
    assert running() is not job


def test_an_error_is_shown_to_the_user_who_started(server: Hub) -> None:
    server.error = SourceError("The Hub returned error 503. Try again later.")
    test = button(page(), "Download").click().run()
    server.finish.set()
    until(lambda: downloads.running(NAME) is None)
    assert "error 503" in said(test.run())
    assert "error 503" not in said(page())


def test_a_finished_download_leaves_no_error(server: Hub) -> None:
    test = button(page(), "Download").click().run()
    job = running()
    server.finish.set()
    until(lambda: job.state == "done")
    assert not test.run().error
