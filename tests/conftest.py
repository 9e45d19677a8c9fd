"""What several tests share: tiny checkpoints, random and seeded, and the bundled model."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from support.models import byte_level_bpe, random_gpt2

# Models this small are slower on many threads, which wait for each other at every step.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
import pytest
import torch
from hypothesis import HealthCheck, settings
from playwright.sync_api import Browser, sync_playwright
from support.browser import ARGS, chromium, served
from tokenizers import Tokenizer
from transformers.models.gpt2.modeling_gpt2 import GPT2LMHeadModel

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


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the app is served while the tests of a file run."""
    with served(tmp_path_factory.mktemp("app") / "log") as found:
        yield found


@pytest.fixture(scope="session")
def chrome() -> Iterator[Browser]:
    """The Chromium of this machine."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=ARGS)
        yield browser
        browser.close()
