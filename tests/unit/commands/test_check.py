"""`mha-viz check`: its table and its exit code."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from support.command import Done
from tokenizers import Tokenizer, normalizers

from mha_viz.checkpoints.parity import Largest, Parity
from mha_viz.commands import check
from mha_viz.head import Head

Command = Callable[..., Done]
GOOD = Parity(
    17, "cpu", Largest(1.5e-6, 1e-4), Largest(2e-7, 1e-4, Head(1, 2)), Largest(1e-7, 1e-5),
    Largest(0.0, 0.0),
)  # fmt: skip


@pytest.fixture
def lowercase(folder: Path, tokenizer: Tokenizer, tmp_path: Path) -> Path:
    """The model with a tokenizer that makes capitals small."""
    copy = shutil.copytree(folder, tmp_path / "lowercase")
    lower = Tokenizer.from_str(tokenizer.to_str())
    lower.normalizer = normalizers.Lowercase()
    lower.save(str(copy / "tokenizer.json"))
    return copy


def test_a_right_model_passes(command: Callable[..., Done], folder: Path) -> None:
    done = command("check", folder, "the cat sat on the mat")
    assert done.code == 0
    assert done.err == ""
    lines = done.out.splitlines()
    assert lines[0].startswith(f"Model: {folder} (folder), ")
    assert "T = 6, cpu" in done.out or "T = " in done.out
    for name in ("logits", "patterns", "rows", "mask", "tokens"):
        (line,) = [line for line in lines if line.startswith(name)]
        assert line.endswith("ok")


def test_without_a_text_it_has_one(command: Callable[..., Done], folder: Path) -> None:
    assert command("check", folder).code == 0


def test_a_wrong_one_fails_by_name(
    command: Callable[..., Done], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = replace(GOOD, patterns=Largest(0.25, 1e-4, Head(1, 2)), tokens="token 3 has id 5")
    monkeypatch.setattr(check, "check", lambda *_, **__: wrong)
    done = command("check", folder, "the cat")
    assert done.code == 1
    lines = done.out.splitlines()
    assert [line.split()[0].strip(",") for line in lines if line.endswith("FAILED")] == [
        "patterns",
        "tokens",
    ]
    assert "2.5e-01   1.0e-04  L1 H2" in done.out


def test_tokens_that_could_not_be_compared_are_reported() -> None:
    said = check.table(replace(GOOD, tokens_skipped="there is no tokenizer"))
    assert said.splitlines()[-1].endswith("there is no tokenizer  not compared")


def test_it_says_what_was_compared(command: Command, folder: Path) -> None:
    done = command("check", folder, "the cat")
    assert "transformers read the checkpoint's files itself. The token ids were" in done.out
    said = check.table(GOOD).splitlines()[-1]
    assert said.split(maxsplit=1)[1] == "same ids as transformers' tokenizer  ok"


def test_it_says_what_the_model_read(command: Command, folder: Path) -> None:
    done = command("check", folder, "the cat sat " * 40, "--cut", "start")
    assert done.code == 0
    assert "but this model's context holds 64; " in done.out
    assert "were dropped at the start." in done.out
    assert "Note: The unembedding is the token embedding (tied head).\n" in done.out


def test_a_changed_text_is_shown(command: Command, lowercase: Path) -> None:
    done = command("check", lowercase, "The Cat")
    assert done.code == 0
    assert "Note: The tokenizer changes the text. The model reads: 'the cat'\n" in done.out
    assert "AutoTokenizer would leave out" in done.out
