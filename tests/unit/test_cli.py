"""The command `mha-viz`: what it passes on, what it refuses, and in which words."""

import socket
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest
from streamlit.web import cli as streamlit

from mha_viz import __version__
from mha_viz.assets import APP
from mha_viz.cli import main


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The command lines that Streamlit was started with."""
    lines: list[list[str]] = []
    monkeypatch.setattr(streamlit, "main", lambda line, **_: lines.append(line))
    return lines


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that somebody else serves."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield int(other.getsockname()[1])


def test_the_bare_command_starts_the_app_as_its_settings_say(started: list[list[str]]) -> None:
    assert main([]) == 0
    assert started == [["run", str(APP)]]
    assert APP.exists()


def test_host_port_and_browser_are_passed_on(started: list[list[str]]) -> None:
    assert main(["--host", "127.0.0.1", "--port", "54321", "--no-browser"]) == 0
    ((_, _, *options),) = started
    assert options == [
        "--server.address", "127.0.0.1", "--server.port", "54321", "--server.headless", "true"
    ]  # fmt: skip


@pytest.mark.parametrize("port", ["", "x", "0", "-1", "65536", "80.5", "８０"])
def test_what_is_no_port_is_refused(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([f"--port={port}"])
    assert stopped.value.code == 2
    assert f"{port!r} is not a whole number from 1 to 65535" in capsys.readouterr().err


def test_an_unknown_word_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["nonsense"])
    assert stopped.value.code == 2
    assert "nonsense" in capsys.readouterr().err


def test_a_port_in_use_gets_a_sentence(
    taken: int, started: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--port", str(taken)]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"mha-viz: port {taken} is in use on localhost.")
    assert "--port" in said
    assert said.count("\n") == 1
    assert not started


def test_an_address_of_another_machine_gets_a_sentence(
    started: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--host", "203.0.113.7"]) == 1  # reserved for examples: no machine has it
    said = capsys.readouterr().err
    assert said.startswith("mha-viz: this machine cannot serve on '203.0.113.7'.")
    assert not started


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        (click.exceptions.Abort(), 0, ""),  # Ctrl+C, once the server has shut down
        (KeyboardInterrupt(), 130, ""),  # and before it was up
        (click.BadParameter("'abc' is no port"), 1, "mha-viz: Invalid value: 'abc' is no port\n"),
    ],
    ids=["stopped", "interrupted", "environment"],
)
def test_how_the_server_ended_becomes_an_exit_code(
    raised: BaseException,
    code: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def end(*_: object, **__: object) -> None:
        raise raised

    monkeypatch.setattr(streamlit, "main", end)
    assert main([]) == code
    assert capsys.readouterr().err == said


def test_help_names_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["--help"])
    assert stopped.value.code == 0
    said = capsys.readouterr().out
    for option in ("--port", "--host", "--no-browser", "--version"):
        assert option in said


def test_python_m_is_the_same_command_and_help_waits_for_nothing_heavy() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "mha_viz", "--version"],
        cwd=APP.parent, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.stdout.strip() == f"mha-viz {__version__}"
    assert "mha_viz.cli" in done.stderr
    assert " torch" not in done.stderr
    assert "streamlit" not in done.stderr
