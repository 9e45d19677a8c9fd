"""What several tests share: tiny checkpoints, random and seeded, and the bundled model."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from support.models import byte_level_bpe, random_gpt2

# Models this small are slower on many threads, which wait for each other at every step.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
import pytest
import torch
from hypothesis import HealthCheck, settings
from playwright.sync_api import Browser, expect, sync_playwright
from support.browser import ARGS, chromium, served
from tokenizers import Tokenizer
from transformers.models.gpt2.modeling_gpt2 import GPT2LMHeadModel
from xdist.scheduler.loadfile import LoadFileScheduling

from mha_viz.checkpoints import load
from mha_viz.model import Model

torch.set_num_threads(1)
settings.register_profile(
    "project",
    deadline=None,  # a busy machine is not a failure
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("project")
expect.set_options(timeout=30_000)  # milliseconds


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests that need a browser."""
    for item in items:
        if "chrome" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.browser)


class _ByFile(LoadFileScheduling):
    """One process runs all tests of a file; the files in tests/browser share a process too."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return "tests/browser" if file.startswith("tests/browser/") else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling:
    """How pytest-xdist divides the tests among its processes."""
    return _ByFile(config, log)


@pytest.fixture(scope="session", autouse=True)
def _no_job_outlives_the_tests() -> Iterator[None]:
    """Stops what a test left running, since torch aborts the process if a thread is cut off."""
    yield
    if jobs := sys.modules.get("mha_viz.app.work.jobs"):
        jobs.stop_all(patience=60)


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    """A byte-level BPE of 300 tokens, of which 43 are longer than a byte."""
    corpus = "the cat sat on the mat and the dog ran to the other side of a small old town, "
    corpus += "where many people sing"
    found = byte_level_bpe([corpus], 300)
    assert found.get_vocab_size() == 300
    return found


@pytest.fixture(scope="session")
def gpt2() -> Callable[..., GPT2LMHeadModel]:
    """`gpt2(seed=0, **config)`: see `random_gpt2`."""
    return random_gpt2


@pytest.fixture
def checkpoint(tmp_path: Path, tokenizer: Tokenizer) -> Callable[..., Path]:
    """`checkpoint(model)`: a folder as transformers writes it, with a tokenizer."""

    def write(model: GPT2LMHeadModel, name: str = "model", *, words: bool = True) -> Path:
        folder = tmp_path / name
        model.save_pretrained(folder)
        if words:
            tokenizer.save(str(folder / "tokenizer.json"))
        return folder

    return write


@pytest.fixture(scope="session")
def tiny(tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Model:
    """A loaded model of 2 layers, 4 heads and 64 positions."""
    folder = tmp_path_factory.mktemp("tiny")
    random_gpt2(7).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    return load(folder, device="cpu")


@pytest.fixture(scope="session")
def bundled() -> Model:
    """The model in assets/, on the CPU."""
    return load("bundled", device="cpu")


@pytest.fixture(scope="session")
def address(chrome: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the app is served to the browser."""
    with served(tmp_path_factory.mktemp("app") / "log") as found:
        yield found


@pytest.fixture(scope="session")
def chrome() -> Iterator[Browser]:
    """The Chromium of this machine; without one, the tests that need it are skipped."""
    if chromium() is None and not os.environ.get("MHA_VIZ_NEED_BROWSER"):
        pytest.skip("no Chromium on this machine (apt install chromium)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=ARGS)
        yield browser
        browser.close()
