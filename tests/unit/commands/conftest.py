"""What the tests of commands share."""

from collections.abc import Callable
from pathlib import Path

import pytest
from support.command import Done, run
from support.models import random_gpt2
from tokenizers import Tokenizer

TEXT = "the cat sat on the mat and the dog ran"


@pytest.fixture(scope="session")
def folder(tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of 2 layers and 4 heads."""
    found = tmp_path_factory.mktemp("model")
    random_gpt2(7).save_pretrained(found)
    tokenizer.save(str(found / "tokenizer.json"))
    return found


@pytest.fixture
def command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., Done]:
    """`command("trace", …)` runs `mha-viz trace …` in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: run(capsys, *arguments)
