"""The commands of `mha-viz` that work without a browser: their names and options.

Each has a module with `run(options)`, which returns the exit code. It is imported when it runs, so
that `--help` does not wait for torch.
"""

import argparse
import importlib
import signal
import textwrap
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from mha_viz.errors import HeadNotFound
from mha_viz.head import Head

MEASURES = ("exact", "gradient", "values", "confidence")  # of importance, as in pruning.orders
_PATTERN_TYPES = ("float16", "float32")


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds the parser of each command."""
    _check(commands)
    _trace(commands)
    _figure(commands)
    _heads(commands)
    _prune(commands)


def text_after_options(options: argparse.Namespace, rest: list[str]) -> list[str]:
    """Takes TEXT from the `rest` that argparse left, and returns what is still left.

    Where TEXT is optional, argparse leaves it if it comes after an option.
    """
    is_text = len(rest) == 1 and (rest[0] == "-" or " " in rest[0] or not rest[0].startswith("-"))
    if not is_text or getattr(options, "text", "") is not None:
        return rest
    if options.file is not None:
        options.refuse("argument TEXT: not allowed with argument --file")
    options.text = rest[0]
    return []


def _check(commands: Any) -> None:
    command = _command(
        commands,
        "check",
        "Compares logits, patterns and tokens of a text with transformers in eager mode.",
        'mha-viz check bundled "The cat sat on the mat."',
        "Exits with 0 if everything is within its limit, and with 1 otherwise.",
    )
    _add_text(command)


def _trace(commands: Any) -> None:
    command = _command(
        commands,
        "trace",
        "Writes the q, k, v, logits, scales and tokens of a text; as CSV, every attention weight.",
        'mha-viz trace bundled "The cat sat on the mat." -o cat.npz',
    )
    _add_text(command)
    _add_output(command, ".npz", ".json", ".csv", required=True)
    command.add_argument(
        "--patterns", choices=_PATTERN_TYPES, help="also write every pattern, in this type"
    )


def _figure(commands: Any) -> None:
    command = _command(
        commands,
        "figure",
        "Draws all heads or, with --head, one pattern; with --lines, heads as lines.",
        'mha-viz figure bundled "The cat sat on the mat." --head L3H4 -o head.html',
        "SVG and PNG need Chromium, Chrome or Edge on this machine.",
    )
    _add_text(command)
    _add_output(command, ".html", ".svg", ".png", ".json", ".csv", ".npz", required=True)
    command.add_argument(
        "--head",
        type=_head,
        action="append",
        metavar="L5H1",
        help="the head to draw (repeatable with --lines)",
    )
    command.add_argument("--lines", action="store_true", help="lines from token to token")
    command.add_argument("--theme", choices=("light", "dark"), default="light")
    command.add_argument(
        "--scale",
        choices=("sqrt", "weight", "share"),
        default="sqrt",
        help="what the colours show: the square root of the weight (default), the weight, or the "
        "weight as a multiple of the uniform one",
    )
    command.add_argument(
        "--size", type=partial(_count, least=100, most=4000), default=640,
        help="width in pixels (default: 640)",
    )  # fmt: skip


def _heads(commands: Any) -> None:
    command = _command(
        commands,
        "heads",
        "Measures every head: previous token, sink, induction, entropy and more.",
        "mha-viz heads bundled -o heads.csv",
        "Without a text, all measures use random tokens. Without -o, prints CSV.",
    )
    _add_text(command)
    _add_output(command, ".csv", ".json", ".npz")
    command.add_argument(
        "--seeds", type=_count, default=5, help="number of seeds for random tokens (default: 5)"
    )


def _prune(commands: Any) -> None:
    command = _command(
        commands,
        "prune",
        "Ranks heads, and measures the loss as they are removed, least important first.",
        "mha-viz prune bundled --by gradient -o ranking.csv --remove 3 --folder pruned",
        "Without a text, uses the reference text. Every other paragraph is used to rank the "
        "heads, the rest to measure the loss. Without -o and --folder, prints CSV.",
    )
    _add_text(command, whole=False)
    _add_output(command, ".csv", ".json", ".npz")
    command.add_argument(
        "--by", choices=MEASURES, default="exact", help="measure of importance (default: exact)"
    )
    command.add_argument("--folder", type=Path, help="also write the pruned model to this folder")
    which = command.add_mutually_exclusive_group()
    which.add_argument("--remove", type=_count, metavar="N", help="prune the N least important")
    which.add_argument(
        "--head", type=_head, action="append", metavar="L5H1", help="prune this head (repeatable)"
    )
    command.add_argument(
        "--zeroed",
        action="store_true",
        help="write a full-size GPT-2 with zeros for these heads, which transformers can read",
    )


def _command(
    commands: Any, name: str, what: str, example: str, more: str = ""
) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(
        name,
        help=what,
        description=what,
        epilog=f"{textwrap.fill(more, 78)}\n\nexample: {example}".strip(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("model", metavar="MODEL", help='"bundled", a name on the Hub, or ./folder')
    command.add_argument("--device", help="cuda, mps or cpu (default: the best one)")
    command.add_argument("--tokenizer", help="where to load the tokenizer from, instead of MODEL")
    command.add_argument(
        "--allow-pickle", action="store_true", help="also read pytorch_model.bin in a folder"
    )
    command.set_defaults(run=partial(_run, name), refuse=command.error)
    return command


def _run(name: str, options: argparse.Namespace) -> int:
    run: Callable[[argparse.Namespace], int]
    # Whoever ends the command, its partial files are removed.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        run = importlib.import_module(f"mha_viz.commands.{name}").run
        return run(options)
    finally:
        signal.signal(signal.SIGTERM, before)


def _add_text(command: argparse.ArgumentParser, *, whole: bool = True) -> None:
    """Adds the text, and, if the model reads it as a whole, what happens at its ends."""
    given = command.add_mutually_exclusive_group()
    given.add_argument("text", nargs="?", metavar="TEXT", help='the text; "-" reads standard input')
    given.add_argument("--file", type=Path, help="read the text from a UTF-8 file")
    if not whole:
        return
    command.add_argument(
        "--cut",
        choices=("end", "start"),
        default="end",
        help="which end of a text that is too long is dropped (default: end)",
    )
    command.add_argument(
        "--start-of-text",
        action="store_true",
        help="add the special tokens that the tokenizer's template puts around a text",
    )


def _add_output(command: argparse.ArgumentParser, *endings: str, required: bool = False) -> None:
    def path(typed: str) -> Path:
        found = Path(typed)
        if found.suffix.lower() not in endings:
            raise argparse.ArgumentTypeError(f"{typed!r} does not end in {', '.join(endings)}")
        return found

    command.add_argument(
        "-o", "--output", type=path, required=required, metavar="FILE", help=", ".join(endings)
    )
    command.add_argument("--force", action="store_true", help="overwrite an existing file or model")


def _head(typed: str) -> Head:
    try:
        return Head.parse(typed)
    except HeadNotFound as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _count(typed: str, *, least: int = 1, most: int = 100_000) -> int:
    if not (typed.isascii() and typed.isdigit() and least <= int(typed) <= most):
        raise argparse.ArgumentTypeError(f"{typed!r} is not a whole number from {least} to {most}")
    return int(typed)
