"""One model in huggingface_hub's cache, in its layout, so that other programs find it too."""

import os
import re
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from filelock import FileLock
from huggingface_hub import constants

from mha_viz.checkpoints.hub_names import MAIN, HubName
from mha_viz.checkpoints.weight_files import find_weights
from mha_viz.errors import CheckpointError, SourceError

CONFIG = "config.json"
PARTIAL = ".incomplete"
HASH = re.compile(r"\w[\w.-]{0,127}", re.ASCII)  # a file name that cannot leave its folder


def cache_folder() -> Path:
    """huggingface_hub's cache folder, according to the current environment variables."""
    env = os.environ.get
    folder = env("HF_HUB_CACHE") or (f"{env('HF_HOME')}/hub" if env("HF_HOME") else None)
    return Path(os.path.expandvars(os.path.expanduser(folder or constants.HF_HUB_CACHE)))


class CachedModel:
    """The files of one model in the cache: blobs named by hash, snapshots that link to them."""

    def __init__(self, at: HubName) -> None:
        self.name, self.revision = str(at), at.revision
        self.root = cache_folder() / f"models--{at.repo.replace('/', '--')}"

    def lock(self) -> FileLock:
        """The lock that all downloads of this model share."""
        locks = self.root.parent / ".locks" / self.root.name
        locks.mkdir(parents=True, exist_ok=True)
        return FileLock(locks / "mha-viz.lock")

    def find(self, *, weights: bool) -> Path | None:
        """A complete snapshot of the revision; None if there is none.

        For `main`, one that is not known as another revision is better than none, the newest first.
        Without `weights`, one with a tokenizer is enough.
        """
        ref = self.root / "refs" / self.revision
        commit = ref.read_text(errors="replace").strip() if ref.is_file() else self.revision
        folders = (self.root / "snapshots").glob("*")
        complete = [folder for folder in folders if self._is_complete(folder, weights)]
        if self.revision != MAIN:
            return next((folder for folder in complete if folder.name == commit), None)
        others = self._other_revisions() - {commit}
        return max(
            (folder for folder in complete if folder.name not in others),
            key=lambda f: (f.name == commit, f.stat().st_mtime),
            default=None,
        )

    def _other_revisions(self) -> set[str]:
        """The commits that were fetched as a branch, a tag or a commit other than `main`."""
        refs = (file for file in (self.root / "refs").rglob("*") if file.is_file())
        return {
            file.read_text(errors="replace").strip()
            for file in refs
            if file != self.root / "refs" / MAIN
        }

    def _is_complete(self, folder: Path, weights: bool) -> bool:
        kinds = (("tokenizer.json",), ("vocab.json", "merges.txt"), ("vocab.txt",))
        tokenizer = any(_holds(folder, *kind) for kind in kinds)
        if not weights:
            return tokenizer
        absent = _holds(self.root / ".no_exist" / folder.name, "tokenizer.json", "vocab.json")
        if not _holds(folder, CONFIG) or not (tokenizer or absent):
            return False
        with suppress(SourceError, CheckpointError):
            return bool(find_weights(folder, self.name, allow_pickle=False))
        return False

    def snapshot(self, commit: str) -> Path:
        """The snapshot folder of a commit."""
        return self.root / "snapshots" / commit

    def blob(self, digest: str) -> Path:
        """The path of the blob with this hash."""
        return self.root / "blobs" / digest

    def note_absent(self, commit: str, name: str) -> None:
        """Records that a commit has no such file."""
        note = self.root / ".no_exist" / commit / name
        note.parent.mkdir(parents=True, exist_ok=True)
        note.touch()

    def set_revision(self, commit: str) -> None:
        """Records that the revision is this commit."""
        ref = self.root / "refs" / self.revision
        ref.parent.mkdir(parents=True, exist_ok=True)
        ref.write_text(commit)

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
