"""What a page cannot do without: it shows how far it is, can be stopped, and is made once."""

import os
import re
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect
from support.browser import IDLE, ROOT, Tab, served
from support.script import button, component, opened, said

from mha_viz.app.work import jobs
from mha_viz.app.work.progress import Halt
from mha_viz.model import Model

SLOW = """
import time
from mha_viz import gpt2
run = gpt2.GPT2.run
def slow(self, ids, *, head_gate=None, on_layer=None):
    def told(done):
        time.sleep(SECONDS)
        if on_layer is not None:
            on_layer(done)
    return run(self, ids, head_gate=head_gate, on_layer=told)
gpt2.GPT2.run = slow
"""
SLOW_EFFECT = """
import time
from mha_viz.analysis import logit_attribution as effects
head_effect = effects.head_effect
def slow(*given, on_progress, **how):
    for step in range(75):  # longer than a page needs to open beside other work
        time.sleep(0.4)
        on_progress(step / 75)
    return head_effect(*given, on_progress=on_progress, **how)
effects.head_effect = slow
"""
PROGRESS = "Running the model…"


@pytest.fixture
def slow_trace(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every trace takes three seconds; the list says how each ended."""
    ends: list[str] = []
    trace = Model.trace

    def slow(self: Model, text: str, *, on_layer: Callable[[int], None], **how: Any) -> Any:
        try:
            for _ in range(60):
                time.sleep(0.05)
                on_layer(1)
        except Halt:
            ends.append("halted")
            raise
        ends.append("done")
        return trace(self, text, **how)

    monkeypatch.setattr(Model, "trace", slow)
    return ends


def test_a_stopped_trace_is_told_leaves_off_and_starts_again(slow_trace: list[str]) -> None:
    queue = jobs.foreground

    def stop_what_runs() -> None:
        end = time.monotonic() + 60
        while not queue._running and time.monotonic() < end:
            time.sleep(0.02)
        time.sleep(0.7)  # by then the page shows progress
        for job in list(queue._running):
            queue.stop(job)

    threading.Thread(target=stop_what_runs, daemon=True).start()
    test = opened("attention", text="a text that nobody has typed before")
    assert not test.exception
    assert "done" not in slow_trace
    assert "Stopped: Running the model." in " ".join(one.value for one in test.caption)
    assert test.text_area(key="text").value == "a text that nobody has typed before"
    end = time.monotonic() + 5
    while not slow_trace and time.monotonic() < end:
        time.sleep(0.02)
    assert slow_trace == ["halted"]
    test = button(test, "Start again").click().run()
    assert slow_trace == ["halted", "done"]
    assert component(test, "strip")["tokens"][0][0] == "a"
    assert "Stopped" not in " ".join(one.value for one in test.caption)


def test_what_somebody_made_is_there_for_all(slow_trace: list[str]) -> None:
    for _ in range(2):
        opened("attention", text="a text that two visitors look at")
    assert slow_trace == ["done"]


def test_what_fails_is_told_to_everybody_who_asks() -> None:
    for _ in range(2):
        test = opened("attention", model="./nowhere")
        assert "There is no folder ./nowhere" in said(test)
        assert component(test, "strip")["n_layers"] == 4  # the bundled model meanwhile


def slowed(folder: Path, code: str) -> AbstractContextManager[str]:
    """The app on a machine where something takes long."""
    (folder / "sitecustomize.py").write_text(code, encoding="utf-8")
    return served(folder / "log", PYTHONPATH=os.pathsep.join((str(folder), str(ROOT))))


@pytest.mark.browser
def test_a_long_step_can_be_stopped_left_and_started_again(chrome: Browser, tmp_path: Path) -> None:
    with slowed(tmp_path, SLOW.replace("SECONDS", "0.7")) as address:
        tab = Tab(chrome, address, viewport={"width": 1440, "height": 900})
        page = tab.open("", text="The king sat down.", at="L0H0").page
        lead = page.locator(".lead")
        expect(lead).to_contain_text("5 tokens")
        area = page.get_by_label("Text", exact=True)

        def type_in(text: str) -> None:
            area.fill(text)
            area.press("Control+Enter")
            expect(page.get_by_text(re.compile(PROGRESS))).to_be_visible()

        type_in("The queen stood up and went away.")
        page.get_by_role("button", name="Stop", exact=True).click()
        expect(page.get_by_text("Stopped: Running the model.")).to_be_visible(timeout=2_000)
        expect(area).to_have_value("The queen stood up and went away.")
        expect(lead).to_contain_text("5 tokens")  # what was shown stays
        page.get_by_role("button", name="Start again").click()
        expect(lead).to_contain_text("8 tokens")

        type_in("A dog.")
        area.fill("A dog and a cat.")  # another choice ends the waiting for the first
        area.press("Control+Enter")
        expect(lead).to_contain_text("6 tokens")
        page.wait_for_selector(IDLE, state="attached")
        assert page.get_by_role("button", name="Stop", exact=True).count() == 0
        assert tab.problems == []
        tab.context.close()


@pytest.mark.browser
def test_the_effect_of_a_head_can_be_stopped_and_started_again(
    chrome: Browser, tmp_path: Path
) -> None:
    with slowed(tmp_path, SLOW_EFFECT) as address:
        tab = Tab(chrome, address, viewport={"width": 1440, "height": 900})
        page = tab.open("head", look="Values", at="L3H0").page
        page.get_by_role("button", name="Stop", exact=True).click()
        expect(page.get_by_text("Stopped after 0 of 1 heads.")).to_be_visible(timeout=2_000)
        expect(page.get_by_text("Raised most")).to_have_count(0)
        expect(page.get_by_text("How this head shifts")).to_be_visible()
        page.get_by_role("button", name="Start again").click()
        expect(page.get_by_text("Raised most")).to_be_visible(timeout=60_000)
        assert tab.problems == []
        tab.context.close()
