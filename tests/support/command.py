"""`mha-viz` run in this process, with what it printed."""

from dataclasses import dataclass

import pytest

from mha_viz.cli import main


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> Done:
    """One command line; its progress is hidden, because no terminal reads it."""
    try:
        code = main([str(argument) for argument in arguments])
    except SystemExit as ended:  # argparse ends by itself
        code = int(str(ended.code))
    captured = capsys.readouterr()
    return Done(code, captured.out, captured.err)
