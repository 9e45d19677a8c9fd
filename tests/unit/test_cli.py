"""The command `mha-viz`: what it passes on, what it rejects, and its messages."""

import argparse
import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest
from streamlit.web import cli as streamlit

from mha_viz import __main__, __version__
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
    """A port that is already in use."""
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
def test_an_invalid_port_is_rejected(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([f"--port={port}"])
    assert stopped.value.code == 2
    assert f"{port!r} is not a whole number from 1 to 65535" in capsys.readouterr().err


def test_an_unknown_argument_is_rejected(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["nonsense"])
    assert stopped.value.code == 2
    assert "nonsense" in capsys.readouterr().err


def test_a_port_in_use_gets_a_message(
    taken: int, started: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--port", str(taken)]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"mha-viz: port {taken} is in use on localhost.")
    assert "--port" in said
    assert said.count("\n") == 1
    assert not started


def test_an_address_of_another_machine_gets_a_message(
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
def test_the_end_of_the_server_determines_the_exit_code(
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


@pytest.mark.parametrize(
    "raised", [MemoryError(), RuntimeError("DefaultCPUAllocator: not enough memory: 9 bytes")]
)
def test_too_little_memory_gets_a_sentence(
    raised: BaseException, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(name: str, options: object) -> int:
        raise raised

    monkeypatch.setattr("mha_viz.commands._run", run)
    assert main(["check", "bundled"]) == 1
    assert capsys.readouterr().err == (
        "mha-viz: there is not enough memory. Use a shorter text or a smaller model.\n"
    )


def test_an_output_that_nobody_reads_any_more_ends_quietly() -> None:
    printed = (
        "import sys\nfrom mha_viz import commands\nfrom mha_viz.cli import main\n"
        "commands._run = lambda *_: [print('x' * 9999, flush=True) for _ in range(999)]\n"
        "sys.exit(main(['heads', 'bundled']))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", printed],
        cwd=APP.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_an_output_that_cannot_be_written_gets_a_sentence() -> None:
    printed = (
        "import sys\nfrom mha_viz import commands\nfrom mha_viz.cli import main\n"
        "commands._run = lambda *_: print('x') or 0\nsys.exit(main(['heads', 'bundled']))"
    )
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, "-c", printed],
            cwd=APP.parent, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60,
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == "mha-viz: the output cannot be written: no space is left.\n"


@pytest.mark.skipif(os.name == "nt", reason="needs a shell that can close standard streams")
def test_closed_streams_break_nothing() -> None:
    command = f"{sys.executable} -m mha_viz heads bundled 'The cat sat.' --seeds 1"
    for closed in (">&-", "2>&-"):
        done = subprocess.run(
            f"{command} {closed}",
            shell=True, cwd=APP.parent, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")


def test_options_of_the_app_are_refused_by_commands(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["--port", "8600", "check", "bundled"])
    assert stopped.value.code == 2
    assert "--port" in capsys.readouterr().err


def test_help_names_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["--help"])
    assert stopped.value.code == 0
    said = capsys.readouterr().out
    for option in ("--port", "--host", "--no-browser", "--version"):
        assert option in said
    for command in ("check", "trace", "figure", "heads", "prune"):
        assert f"\n    {command} " in said


def test_python_m_is_the_same_command_and_help_waits_for_nothing_heavy() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "mha_viz", "--version"],
        cwd=APP.parent, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.stdout.strip() == f"mha-viz {__version__}"
    assert "mha_viz.cli" in done.stderr
    assert " torch" not in done.stderr
    assert "streamlit" not in done.stderr


class Interrupted:
    """Stands for Ctrl+C while the modules of the command are imported."""

    def find_spec(self, name: str, *_: object) -> None:
        if name == "mha_viz.cli":
            raise KeyboardInterrupt


def test_an_interrupt_while_it_is_imported_ends_it_quietly(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "mha_viz.cli")
    monkeypatch.setattr(sys, "meta_path", [Interrupted(), *sys.meta_path])
    assert __main__.run() == 130
    assert capsys.readouterr() == ("", "")


def test_an_interrupt_while_options_are_read_ends_it_quietly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(argparse.ArgumentParser, "parse_known_args", interrupt)
    assert main(["check", "bundled"]) == 130
