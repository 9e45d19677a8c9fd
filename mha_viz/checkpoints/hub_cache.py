"""One model in huggingface_hub's cache: the same layout, so that other programs find it too."""

import os
import re
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from filelock import FileLock
from huggingface_hub import constants

from mha_viz.checkpoints.tensors import find_weights
from mha_viz.errors import CheckpointError, SourceError

CONFIG = "config.json"
PARTIAL = ".incomplete"
HASH = re.compile(r"[\w.-]{1,128}", re.ASCII)  # a file name that cannot leave its folder


def cache_folder() -> Path:
    """The cache of huggingface_hub, with the environment variables as they are now."""
    env = os.environ.get
    folder = env("HF_HUB_CACHE") or (f"{env('HF_HOME')}/hub" if env("HF_HOME") else None)
    return Path(os.path.expandvars(os.path.expanduser(folder or constants.HF_HUB_CACHE)))


class CachedModel:
    """The files of one model in the cache: blobs named by hash, snapshots that link to them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.root = cache_folder() / f"models--{name.replace('/', '--')}"

    def lock(self) -> FileLock:
        """The lock that all downloads of this model share."""
        locks = self.root.parent / ".locks" / self.root.name
        locks.mkdir(parents=True, exist_ok=True)
        return FileLock(locks / "mha-viz.lock")

    def find(self, *, weights: bool) -> Path | None:
        """A complete snapshot, or only a tokenizer: that of `main` if possible, else the newest."""
        main = self.root / "refs" / "main"
        commit = main.read_text(errors="replace").strip() if main.is_file() else ""
        folders = (self.root / "snapshots").glob("*")
        complete = (folder for folder in folders if self._is_complete(folder, weights))
        return max(
            complete, key=lambda one: (one.name == commit, one.stat().st_mtime), default=None
        )

    def _is_complete(self, folder: Path, weights: bool) -> bool:
        tokenizer = _holds(folder, "tokenizer.json") or _holds(folder, "vocab.json", "merges.txt")
        if not weights:
            return tokenizer
        absent = _holds(self.root / ".no_exist" / folder.name, "tokenizer.json", "vocab.json")
        if not _holds(folder, CONFIG) or not (tokenizer or absent):
            return False
        with suppress(SourceError, CheckpointError):
            return bool(find_weights(folder, self.name, allow_pickle=False))
        return False

    def snapshot(self, commit: str) -> Path:
        """The folder of a commit."""
        return self.root / "snapshots" / commit

    def blob(self, digest: str) -> Path:
        """The file with this hash."""
        return self.root / "blobs" / digest

    def note_absent(self, commit: str, name: str) -> None:
        """Remembers that a commit has no such file."""
        note = self.root / ".no_exist" / commit / name
        note.parent.mkdir(parents=True, exist_ok=True)
        note.touch()

    def set_main(self, commit: str) -> None:
        """Remembers that `main` is this commit."""
        main = self.root / "refs" / "main"
        main.parent.mkdir(exist_ok=True)
        main.write_text(commit)

    def check_space(self, blobs: Iterable[Path], n_bytes: int) -> None:
        """Raises SourceError if the disk has no room for the rest of `blobs`, `n_bytes` in all."""
        files = [file for blob in blobs for file in (blob, blob.with_suffix(PARTIAL))]
        missing = n_bytes - sum(file.stat().st_size for file in files if file.is_file())
        free = shutil.disk_usage(self.root).free
        if missing > free:
            raise SourceError(
                f"{self.name} needs {missing / 1e6:,.0f} MB more, but the disk with the cache has "
                f"{free / 1e6:,.0f} MB free. Free some space, or set HF_HUB_CACHE to another disk."
            )


def link(path: Path, blob: Path) -> None:
    """Makes `path` a link to a blob; if the system does not allow links, moves the blob."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    try:
        path.symlink_to(os.path.relpath(blob, path.parent))
    except OSError:  # Windows, without permission to create links
        blob.replace(path)


def _holds(folder: Path, *names: str) -> bool:
    return all((folder / name).is_file() for name in names)
