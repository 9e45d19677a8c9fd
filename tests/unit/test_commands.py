"""The options of the commands, as they are typed."""

import argparse
import os
import signal
import time
from typing import Any

import pytest
from support.command import run

from mha_viz.cli import main
from mha_viz.commands import check, trace


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[argparse.Namespace]:
    """The options that each command was run with."""
    found: list[argparse.Namespace] = []
    for command in (check, trace):
        monkeypatch.setattr(command, "run", lambda options: found.append(options) or 0)
    return found


@pytest.mark.parametrize(
    "line",
    [
        ["check", "bundled", "--cut", "start", "The cat"],
        ["check", "--cut", "start", "bundled", "The cat"],
        ["check", "bundled", "The cat", "--cut", "start"],
        ["trace", "bundled", "--cut", "start", "-o", "t.npz", "The cat"],
        ["trace", "bundled", "-o", "t.npz", "The cat", "--cut", "start"],
    ],
    ids=" ".join,
)
def test_the_text_may_come_before_or_after_options(
    given: list[argparse.Namespace], capsys: pytest.CaptureFixture[str], line: list[str]
) -> None:
    done = run(capsys, *line)
    assert (done.code, done.err) == (0, "")
    (options,) = given
    assert (options.model, options.text, options.cut) == ("bundled", "The cat", "start")


@pytest.mark.parametrize("text", ["-", "-5 degrees", ""])
def test_a_text_with_a_dash_is_a_text(
    given: list[argparse.Namespace], capsys: pytest.CaptureFixture[str], text: str
) -> None:
    assert run(capsys, "check", "bundled", "--cut", "end", text).code == 0
    assert [options.text for options in given] == [text]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (["bundled", "--cat", "x"], "unrecognized arguments: --cat x"),
        (["bundled", "--cat"], "unrecognized arguments: --cat"),
        (["bundled", "a", "--cut", "end", "b"], "unrecognized arguments: b"),
        (["bundled", "--file", "a.txt", "b"], "TEXT: not allowed with argument --file"),
    ],
    ids=str,
)
def test_what_is_left_is_the_wrong_usage(
    given: list[Any], capsys: pytest.CaptureFixture[str], line: list[str], words: str
) -> None:
    done = run(capsys, "check", *line)
    assert done.code == 2
    assert words in done.err
    assert "usage: mha-viz check" in done.err
    assert not given


@pytest.mark.skipif(os.name == "nt", reason="there, the signal ends a process at once")
def test_a_command_that_is_ended_cleans_up_as_if_interrupted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cleaned = []

    def run(options: argparse.Namespace) -> int:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(60)
        finally:
            cleaned.append(True)
        return 0

    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr("mha_viz.commands.heads.run", run)
    assert main(["heads", "bundled"]) == 130
    assert cleaned == [True]
    assert signal.getsignal(signal.SIGTERM) is before
