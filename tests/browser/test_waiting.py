"""Work that takes long: it shows how far it is, can be stopped, and starts again."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import expect
from support.browser import ROOT, AttentionTab, Pages, Tab, served

# Python reads this as it starts. `wait` reports progress for as long as the file exists.
SLOW = """
import os, time
from mha_viz import gpt2
from mha_viz.analysis import logit_attribution

def wait(file, report):
    while os.path.exists(os.path.join(os.environ["HELD"], file)):
        time.sleep(0.05)
        report()

run, head_effect = gpt2.GPT2.run, logit_attribution.head_effect

def slow_run(self, ids, *, head_gate=None, on_layer=None):
    def report(done):
        wait("run", lambda: on_layer and on_layer(done))
    return run(self, ids, head_gate=head_gate, on_layer=report)

def slow_effect(*given, on_progress, **options):
    wait("effect", lambda: on_progress(0.5))
    return head_effect(*given, on_progress=on_progress, **options)

gpt2.GPT2.run, logit_attribution.head_effect = slow_run, slow_effect
"""


class Slow:
    """A server on which the model's run and the effect of a head last until they are let go."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = ""

    def hold(self, what: str) -> None:
        (self.folder / what).touch()

    def let_go(self, what: str) -> None:
        (self.folder / what).unlink()

    @contextmanager
    def serving(self) -> Iterator["Slow"]:
        (self.folder / "sitecustomize.py").write_text(SLOW, encoding="utf-8")
        path = os.pathsep.join((str(self.folder), str(ROOT)))
        with served(self.folder / "log", PYTHONPATH=path, HELD=str(self.folder)) as self.address:
            yield self


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slow]:
    with Slow(tmp_path_factory.mktemp("slow")).serving() as server:
        yield server


def test_a_long_step_can_be_stopped_left_and_started_again(pages: Pages, slow: Slow) -> None:
    with pages.lend() as page:
        tab = AttentionTab(page, slow.address).open(text="The king sat down.", at="L0H0")
        lead = page.locator(".lead")
        expect(lead).to_contain_text("5 tokens")
        area = page.get_by_label("Text", exact=True)
        slow.hold("run")

        def type_in(text: str) -> None:
            area.fill(text)
            area.press("Control+Enter")
            expect(page.get_by_text(re.compile("Running the model…"))).to_be_visible()

        type_in("The queen stood up and went away.")
        page.get_by_role("button", name="Stop", exact=True).click()
        expect(page.get_by_text("Stopped: Running the model.")).to_be_visible()
        expect(area).to_have_value("The queen stood up and went away.")
        expect(lead).to_contain_text("5 tokens")  # what was shown stays
        page.get_by_role("button", name="Start again").click()
        slow.let_go("run")
        expect(lead).to_contain_text("8 tokens")

        slow.hold("run")
        type_in("A dog.")
        area.fill("A dog and a cat.")  # another text ends the waiting for the first
        area.press("Control+Enter")
        slow.let_go("run")
        expect(lead).to_contain_text("6 tokens")
        tab.settle()
        assert page.get_by_role("button", name="Stop", exact=True).count() == 0
        assert tab.end() == []


def test_the_effect_of_a_head_can_be_stopped_and_started_again(pages: Pages, slow: Slow) -> None:
    slow.hold("effect")
    with pages.lend() as page:
        tab = Tab(page, slow.address).open("head", look="Values", at="L3H0")
        page.get_by_role("button", name="Stop", exact=True).click()
        expect(page.get_by_text("Stopped after 0 of 1 heads.")).to_be_visible()
        expect(page.get_by_text("Raised most")).to_have_count(0)
        expect(page.get_by_text("How this head shifts")).to_be_visible()
        slow.let_go("effect")
        page.get_by_role("button", name="Start again").click()
        expect(page.get_by_text("Raised most")).to_be_visible()
        assert tab.end() == []
