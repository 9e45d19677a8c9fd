"""The commands in the README and in the help do what is written there."""

import re
import shlex
from pathlib import Path

import pytest
from support.command import run

from mha_viz.checkpoints import parity

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^mha-viz (\S+ bundled .*)$", README, flags=re.MULTILINE)
COMMANDS = ("check", "trace", "figure", "heads", "prune")
STORY = "The fox saw the hen. The hen saw the fox, and ran away to the old house.\n"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.split()[0])
def test_each_example_of_the_readme_runs(
    example: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "story.txt").write_text(STORY)
    words = shlex.split(example)
    done = run(capsys, *words)
    assert done.code == 0, done.err
    for option in ("-o", "--folder"):
        if option in words:
            assert (tmp_path / words[words.index(option) + 1]).exists()


def test_the_readme_has_an_example_of_each_command() -> None:
    assert tuple(example.split()[0] for example in EXAMPLES) == COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_each_command_has_an_example_that_is_valid(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    done = run(capsys, command, "--help")
    assert done.code == 0
    (example,) = re.findall(rf"^example: mha-viz ({command} .*)$", done.out, flags=re.MULTILINE)
    monkeypatch.setattr("mha_viz.commands._run", lambda name, options: 0)
    assert run(capsys, *shlex.split(example)).code == 0


def test_the_readme_names_the_limits_that_hold() -> None:
    for limit in (
        f"at most {parity.LOGITS:.0e} of the largest logit",
        f"weights by at most {parity.PATTERNS:.0e}",
        f"rows sum to 1 within {parity.ROWS:.0e}",
    ):
        assert limit.replace("e-0", "e-") in " ".join(README.split())
