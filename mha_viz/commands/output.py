"""Writes files and folders completely or not at all, and overwrites nothing without --force."""

import argparse
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from mha_viz.errors import OutputError
from mha_viz.export import Data, Origin
from mha_viz.export.picture import to_plain

_MODEL_FILE = re.compile(  # what a folder may hold that --force replaces
    r"(config|generation_config|tokenizer|tokenizer_config|special_tokens_map|added_tokens|vocab)"
    r"\.json|merges\.txt|vocab\.txt|README\.md|.*\.safetensors(\.index\.json)?|pytorch_model.*"
)


def check_free(path: Path | None, *, force: bool) -> None:
    """Raises OutputError if the path is taken or its folder is missing; before any long work."""
    if path is None:
        return
    with _explained(path):
        if not path.parent.is_dir():
            raise OutputError(f"There is no folder {path.parent}. Create it, or choose another.")
        if not path.exists() and not path.is_symlink():
            return
        held = sorted(entry.name for entry in path.iterdir()) if path.is_dir() else []
        others = [name for name in held if not _MODEL_FILE.fullmatch(name)]
        if others or (held and "config.json" not in held):
            some = f", such as {others[0]}" if others else ""
            raise OutputError(f"{path} holds other files than a model's{some}. Choose another.")
        if not force and not (path.is_dir() and not held):
            raise OutputError(f"{path} already exists. Choose another name, or add --force.")


def check_apart(path: Path | None, folder: Path | None) -> None:
    """Raises OutputError if a file would be written to the place of a folder, or into it."""
    if path is None or folder is None:
        return
    with _explained(path):
        if folder.resolve() in (path.resolve(), *path.resolve().parents):
            raise OutputError(
                f"{path} is in the place of the model's folder {folder}. Choose another name."
            )


@contextmanager
def file(path: Path, *, force: bool) -> Iterator[IO[bytes]]:
    """A file to write, renamed to `path` if the block succeeds. Raises OutputError."""
    partial = _beside(path)
    with _explained(path):
        check_free(path, force=force)
        if path.is_dir():
            raise OutputError(f"{path} is a folder. Give the name of a file.")
        try:
            with partial.open("xb") as opened:
                yield opened
            check_free(path, force=force)  # another process may have written it meanwhile
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)


def folder(path: Path, write: Callable[[Path], None], *, force: bool) -> None:
    """Writes a model's folder, renamed to `path` once it is complete. Raises OutputError."""
    path = path.resolve()  # a link stays one
    partial, before = _beside(path), _beside(path, "old")
    with _explained(path):
        if path == Path.cwd():
            raise OutputError(f"{path} is the current folder. Choose another.")
        check_free(path, force=force)
        if path.is_file():
            raise OutputError(f"{path} is a file. Give the name of a folder.")
        try:
            write(partial)
            if path.exists():
                path.rename(before)
            partial.rename(path)
        finally:
            if not path.exists() and before.exists():
                before.rename(path)
            for left in (partial, before):
                shutil.rmtree(left, ignore_errors=True)


def data(found: Data, options: argparse.Namespace, origin: Origin) -> None:
    """Writes numbers as CSV, JSON or npz, by the ending of -o; without -o, prints CSV."""
    path: Path | None = options.output
    if path is None:
        print(found.csv(origin).replace("\r\n", "\n"), end="")
        return
    with file(path, force=options.force) as opened:
        if path.suffix.lower() == ".npz":
            opened.write(found.npz(origin))
        elif path.suffix.lower() == ".csv":
            opened.write(found.csv(origin).encode("utf-8", "replace"))
        else:
            opened.write(json({**found.arrays, "provenance": dict(origin)}))


def json(content: dict[str, object]) -> bytes:
    """The content as JSON with plain lists, and null for NaN."""
    import json

    return json.dumps(to_plain(content), ensure_ascii=False, allow_nan=False).encode(
        "utf-8", "replace"
    )


def _beside(path: Path, ending: str = "partial") -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.{ending}")


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turns disk errors into an OutputError."""
    try:
        yield
    except OutputError:
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise OutputError(
            f"{path} could not be written: {reason}. Choose another place."
        ) from error
