"""Where the text comes from, and what shows the progress."""

import io
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.command import Done
from tokenizers import Tokenizer, processors

from mha_viz.commands import given

Command = Callable[..., Done]


def typed(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))


def test_a_text_is_taken_as_typed_from_a_file_or_from_standard_input(
    command: Command, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").write_bytes(b"the cat\r\nsat\n")
    typed(monkeypatch, b"the cat\nsat\n")
    outputs = []
    for text in (["the cat\nsat"], ["--file", "a.txt"], ["-"]):
        assert command("trace", folder, *text, "-o", "t.json", "--force").code == 0
        read = (tmp_path / "t.json").read_text()
        outputs.append(read[: read.index('"provenance"')])
    assert outputs[0] == outputs[1] == outputs[2]


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"\xff\xfe\x00", "is not UTF-8 text"), (b"", "The text is empty")],
)
def test_what_is_no_text_is_refused(
    command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, words: str
) -> None:
    typed(monkeypatch, content)
    done = command("trace", folder, "-", "-o", "t.npz")
    assert done.code == 1
    assert words in done.err


def test_a_missing_file_is_refused(command: Command, folder: Path) -> None:
    done = command("trace", folder, "--file", "nowhere.txt", "-o", "t.npz")
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        "mha-viz: nowhere.txt cannot be read: No such file or directory. Check the path.\n"
    )


@pytest.mark.parametrize("both", [[], ["a text", "--file", "a.txt"]])
def test_no_text_or_two_are_the_wrong_usage(
    command: Command, folder: Path, both: list[str]
) -> None:
    assert command("trace", folder, *both, "-o", "t.npz").code == 2


def test_a_missing_model_is_refused(command: Command) -> None:
    done = command("heads", "./nowhere")
    assert (done.code, done.out) == (1, "")
    assert "There is no folder ./nowhere" in done.err


def test_progress_is_one_line_of_a_terminal_that_is_cleared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for stream, shown in ((Terminal(), True), (io.StringIO(), False)):
        monkeypatch.setattr(sys, "stderr", stream)
        with given.progress("Working") as report:
            report(0.5)
        assert ("\rWorking…  50%" in stream.getvalue()) is shown
        assert "\n" not in stream.getvalue()
        assert stream.getvalue().rpartition("\r")[2] == ""


@pytest.mark.parametrize("source", ["a.txt", "standard input"])
def test_a_byte_order_mark_is_removed_and_reported(
    command: Command, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfthe cat")
    typed(monkeypatch, b"\xef\xbb\xbfthe cat")
    text = ["--file", source] if source == "a.txt" else ["-"]
    done = command("trace", folder, *text, "-o", "t.json")
    assert done.code == 0
    assert done.err == f"mha-viz: removed the byte order mark at the start of {source}.\n"
    assert json.loads((tmp_path / "t.json").read_text())["provenance"]["Text"] == "the cat"


def test_arguments_that_are_not_utf8_are_refused(command: Command, folder: Path) -> None:
    """Python marks each byte that it cannot decode with a lone surrogate."""
    done = command("trace", folder, "caf\udce9", "-o", "t.npz")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("mha-viz: TEXT is not UTF-8 text.")
    assert "MODEL is not a name in UTF-8" in command("check", "./caf\udce9").err


def test_the_template_is_added_if_asked(
    command: Command, folder: Path, tmp_path: Path, tokenizer: Tokenizer
) -> None:
    copy, name = shutil.copytree(folder, tmp_path / "start"), "<|endoftext|>"
    with_start = Tokenizer.from_str(tokenizer.to_str())
    with_start.post_processor = processors.TemplateProcessing(
        single=f"{name} $A", special_tokens=[(name, tokenizer.token_to_id(name))]
    )
    with_start.save(str(copy / "tokenizer.json"))
    (copy / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    found = {}
    for options in ((), ("--start-of-text",)):
        assert command("trace", copy, "the cat", "-o", "t.json", "--force", *options).code == 0
        found[options] = json.loads((tmp_path / "t.json").read_text())
    plain, started = found.values()
    assert started["tokens"] == [name, *plain["tokens"]]
    assert started["provenance"]["Added by the template"] == 1
    says = f"Note: The tokenizer's template adds {name}; without --start-of-text, it is off."
    assert says in command("check", copy, "the cat").out
    done = command("check", copy, "the cat", "--start-of-text")
    assert done.code == 0
    assert says not in done.out
    assert "needs a text" in command("heads", copy, "--start-of-text").err
    done = command("check", folder, "the cat", "--start-of-text")
    assert (done.code, done.out) == (1, "")
    assert "has no template" in done.err


def test_a_standard_input_that_is_closed_is_reported(
    command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", None)
    done = command("trace", folder, "-", "-o", "t.npz")
    assert done.code == 1
    assert done.err == "mha-viz: standard input is closed. Give TEXT, or --file.\n"
