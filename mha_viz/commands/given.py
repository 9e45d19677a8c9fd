"""The model and the text of a command, and its progress on standard error."""

import argparse
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from mha_viz import checkpoints
from mha_viz.callbacks import OnProgress
from mha_viz.errors import CheckpointError, TextError
from mha_viz.model import Model

MARK = "\ufeff"  # the byte order mark that some editors write


def model(options: argparse.Namespace) -> Model:
    """The model that MODEL names, with its template if --start-of-text asks for it.

    Raises as `checkpoints.load` does, and CheckpointError for a tokenizer without a template.
    """
    with progress(f"Loading {options.model}") as report:
        found = checkpoints.load(
            _valid(options.model, "MODEL"),
            device=options.device,
            tokenizer=options.tokenizer,
            allow_pickle=options.allow_pickle,
            on_progress=report,
        )
    if not getattr(options, "start_of_text", False):
        return found
    if not found.template_tokens:
        raise CheckpointError(
            f"The tokenizer of {options.model} has no template, so it adds no tokens to a text. "
            "Omit --start-of-text."
        )
    return found.with_template()


def text(options: argparse.Namespace) -> str | None:
    """The text: as typed, from --file, or from standard input; None if there is none.

    One line break at the end of a file or of standard input is dropped, because editors and `echo`
    add it, and so is a byte order mark at the start, with a note on standard error. Raises
    TextError for a text that cannot be read or is not UTF-8.
    """
    if options.file is None and options.text != "-":
        return None if options.text is None else _valid(options.text, "TEXT")
    name = "standard input" if options.file is None else str(options.file)
    if options.file is None and sys.stdin is None:
        raise TextError("standard input is closed. Give TEXT, or --file.")
    try:
        source = sys.stdin.buffer if options.file is None else options.file.open("rb")
        with source:
            read: str = source.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise TextError(f"{name} is not UTF-8 text. Convert it and try again.") from error
    except OSError as error:
        raise TextError(f"{name} cannot be read: {error.strerror}. Check the path.") from error
    if read.startswith(MARK):
        print(f"mha-viz: removed the byte order mark at the start of {name}.", file=sys.stderr)
    return read.removeprefix(MARK).replace("\r\n", "\n").removesuffix("\n")


def needed_text(options: argparse.Namespace) -> str:
    """The text; without one, ends with the command's usage."""
    found = text(options)
    if found is None:
        options.refuse('give TEXT, "-" for standard input, or --file')
    assert found is not None
    return found


def _valid(typed: str, name: str) -> str:
    """The argument. Raises TextError if its bytes were not UTF-8, which Python marks."""
    if not typed.isascii() and re.search("[\ud800-\udfff]", typed):
        raise TextError(
            f"{name} is not UTF-8 text. Convert it, or put the text into a file for --file."
            if name == "TEXT"
            else f"{name} is not a name in UTF-8. Rename the folder."
        )
    return typed


@contextmanager
def progress(what: str) -> Iterator[OnProgress]:
    """Shows the task and the fraction done, in one line on standard error if that is a terminal."""
    shown = sys.stderr is not None and sys.stderr.isatty()  # None if it is closed

    def report(fraction: float) -> None:
        if shown:
            print(f"\r{what}… {fraction:4.0%}", end="", file=sys.stderr, flush=True)

    report(0.0)
    try:
        yield report
    finally:
        if shown:
            print(f"\r{' ' * (len(what) + 6)}\r", end="", file=sys.stderr, flush=True)
