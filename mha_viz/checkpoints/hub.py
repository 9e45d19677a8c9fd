"""Fetches one model of the hub into huggingface_hub's cache: what is needed, and no byte twice.

Session, login, layout and errors are huggingface_hub's. Its download function is not used: it drops
what had arrived when a connection breaks, and without a network it tries for minutes to find out.
"""

import hashlib
import os
import re
import shutil
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from mha_viz.checkpoints.config import read_config
from mha_viz.checkpoints.tensors import find_weights
from mha_viz.errors import Cancelled, CheckpointError, MhaVizError, SourceError

CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
# What makes a tokenizer comes last: a fetch that was cut short must not look complete.
TOKENIZER = ("added_tokens.json", "special_tokens_map.json", "tokenizer_config.json")
TOKENIZER += ("merges.txt", "vocab.json", "tokenizer.json")
TIMEOUT = 10.0  # seconds without a byte
TRIES, PAUSE = 4, 1.0  # how often, and how many seconds apart, a dead connection is tried again

_PART = r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,94}[A-Za-z0-9_])?"
_REPO_ID = re.compile(rf"(?!.*(?:--|\.\.))(?:{_PART}/)?{_PART}(?<!\.git)")
_SHARD = re.compile(r'"([A-Za-z0-9_][A-Za-z0-9_.-]*\.safetensors)"')
_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")  # git's SHA-1, or the SHA-256 of a large file
_ELSE = "The bundled model, and any that was fetched before, work without the hub."
_KEPT = "What has arrived is kept: a new try goes on from there."
_locks: defaultdict[Path, threading.Lock] = defaultdict(threading.Lock)


@dataclass(frozen=True, slots=True)
class Progress:
    """How many bytes of how many have arrived, over all files; `total` is 0 while unknown."""

    done: int
    total: int
    file: str


@dataclass(frozen=True, slots=True)
class Fetched:
    """A snapshot folder with config, weights and tokenizer, and the commit it was taken from."""

    folder: Path
    revision: str
    from_cache: bool


def fetch(
    repo_id: str,
    *,
    on_progress: Callable[[Progress], None] | None = None,
    cancel: threading.Event | None = None,
) -> Fetched:
    """The model `repo_id`: from the cache without any request, or else from the hub.

    Blocks, and calls `on_progress` in this thread for every chunk. What has arrived is kept: the
    next call goes on from there. Raises NotGPT2 or CheckpointError for what config.json says before
    any weights are asked for, SourceError if the model cannot be had, Cancelled after `cancel`.
    """
    return _Model(repo_id, on_progress or (lambda _: None), cancel or threading.Event()).obtain()


def fetch_tokenizer(repo_id: str) -> Path:
    """A snapshot folder with the tokenizer of `repo_id`; raises SourceError if it cannot be had."""
    return _Model(repo_id, lambda _: None, threading.Event()).obtain(weights=False).folder


class _Model:
    """One model, in the cache and on the hub; `done` and `total` count the bytes of a download."""

    def __init__(
        self, name: str, on_progress: Callable[[Progress], None], cancel: threading.Event
    ) -> None:
        if not _REPO_ID.fullmatch(name):
            raise SourceError(
                f"{name[:100]!r} is not a name on the model hub. Give it as `gpt2` or "
                "`owner/name`, with letters, digits, `-`, `_` and `.` only."
            )
        from huggingface_hub import constants

        # huggingface_hub read the environment when it was imported; this follows it as it is now.
        constants.HF_HUB_DISABLE_TELEMETRY = True
        env = os.environ.get
        cache = env("HF_HUB_CACHE") or (f"{env('HF_HOME')}/hub" if env("HF_HOME") else None)
        cache = os.path.expandvars(os.path.expanduser(cache or constants.HF_HUB_CACHE))
        self.root = Path(cache, f"models--{name.replace('/', '--')}")
        self.endpoint = (env("HF_ENDPOINT") or constants.ENDPOINT).rstrip("/")
        offline = env("HF_HUB_OFFLINE") or env("TRANSFORMERS_OFFLINE") or ""
        self.offline = offline.upper() in constants.ENV_VARS_TRUE_VALUES
        self.name, self.on_progress, self.cancel = name, on_progress, cancel
        self.done = self.total = 0

    def obtain(self, *, weights: bool = True) -> Fetched:
        lock = _locks[self.root]
        while not lock.acquire(timeout=0.1):
            self.report(CONFIG)
        try:
            with _explained(self.name):
                if folder := self.cached(weights):
                    return Fetched(folder, folder.name, from_cache=True)
                self.download(weights)
                return Fetched(self.folder, self.folder.name, from_cache=False)
        finally:
            lock.release()

    def cached(self, weights: bool) -> Path | None:
        """A complete snapshot: that of `main` if possible, else the newest."""

        def complete(folder: Path) -> bool:
            def holds(*names: str, where: Path = folder) -> bool:
                return all((where / name).is_file() for name in names)

            tokenizer = holds("tokenizer.json") or holds("vocab.json", "merges.txt")
            absent = self.root / ".no_exist" / folder.name
            known = tokenizer or holds("tokenizer.json", "vocab.json", where=absent)
            if weights and known and holds(CONFIG):
                with suppress(SourceError, CheckpointError):
                    return bool(find_weights(folder, self.name, allow_pickle=False))
            return tokenizer and not weights

        main = self.root / "refs" / "main"
        named = main.read_text(errors="replace").strip() if main.is_file() else ""
        folders = filter(complete, (self.root / "snapshots").glob("*"))
        return max(folders, key=lambda one: (one.name == named, one.stat().st_mtime), default=None)

    def download(self, weights: bool) -> None:
        if self.offline:
            raise SourceError(f"HF_HUB_OFFLINE is set, and {self.name} is not cached. {_ELSE}")
        self.report(CONFIG)
        self.look()
        names = ["generation_config.json", *self.weights()] if weights else []
        names = [name for name in (*TOKENIZER, *names) if name in self.files]
        if not names:
            raise SourceError(f"{self.name} has no tokenizer on the hub. Choose another model.")
        self.total = self.done + sum(self.files[name][0] for name in names)
        missing = sum(self.files[name][0] - self.arrived(name) for name in names)
        free = shutil.disk_usage(self.root).free
        if missing > free:
            raise SourceError(
                f"{self.name} needs {missing / 1e6:,.0f} MB more; the disk of the cache has "
                f"{free / 1e6:,.0f} MB left. Free some, or set HF_HUB_CACHE to another disk."
            )
        for name in names:
            self.get(name)
        if weights:
            find_weights(self.folder, self.name, allow_pickle=False)
            main = self.root / "refs" / "main"
            main.parent.mkdir(exist_ok=True)
            main.write_text(self.folder.name)

    def look(self) -> None:
        """Asks the hub which commit `main` is, and which files it has."""
        from huggingface_hub.utils import build_hf_headers, get_session, hf_raise_for_status

        # identity: a compressed answer has neither the size nor the ranges of the file.
        self.headers = build_hf_headers(headers={"accept-encoding": "identity"})
        url = f"{self.endpoint}/api/models/{self.name}?blobs=true"
        answer = get_session().get(url, headers=self.headers, timeout=TIMEOUT)
        hf_raise_for_status(answer)
        try:
            listing = answer.json()
            files = {
                one["rfilename"]: (
                    int(one["size"]),
                    (one.get("lfs") or {}).get("sha256") or one["blobId"],
                )
                for one in listing["siblings"]
            }
            if not all(
                _HASH.fullmatch(name)
                for name in (listing["sha"], *(hash for _, hash in files.values()))
            ):
                raise ValueError
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise SourceError(
                f"What answered for {self.name} is not the model hub. A network that wants a login "
                f"first does that: open a browser and see. {_ELSE}"
            ) from error
        self.files, self.folder = files, self.root / "snapshots" / listing["sha"]
        absent = self.root / ".no_exist" / self.folder.name
        absent.mkdir(parents=True, exist_ok=True)
        for name in {*TOKENIZER} - files.keys():
            (absent / name).touch()

    def weights(self) -> list[str]:
        """The files that hold the weights, once config.json has been read and found right."""
        if CONFIG not in self.files:
            raise SourceError(f"{self.name} has no config.json, so it is no model to be read here.")
        self.get(CONFIG)
        read_config(self.folder, self.name)
        if WEIGHTS in self.files:
            return [WEIGHTS]
        if INDEX in self.files:
            self.get(INDEX)
            return sorted(set(_SHARD.findall((self.folder / INDEX).read_text(errors="replace"))))
        raise SourceError(
            f"{self.name} has no weights as safetensors; pickled ones (pytorch_model.bin) can run "
            "code, so they are not fetched. Choose another model, or download it yourself and allow "
            "its folder."
        )

    def blob(self, name: str) -> tuple[Path, Path]:
        """Where a file lies when all of it is there, and until then."""
        blob = self.root / "blobs" / self.files[name][1]
        return blob, blob.with_name(f"{blob.name}.incomplete")

    def get(self, name: str) -> None:
        """Puts one file into the snapshot: a link to its blob, as huggingface_hub does it."""
        self.report(name)
        (size, _), link, (blob, partial) = self.files[name], self.folder / name, self.blob(name)
        blob.parent.mkdir(parents=True, exist_ok=True)
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.is_file():
            if not blob.is_file():
                self.fill(name, size, partial)
                ...
                partial.replace(blob)
            link.unlink(missing_ok=True)
            try:
                link.symlink_to(os.path.relpath(blob, link.parent))
            except OSError:  # Windows, without the right to make links
                blob.replace(link)
        self.done += size
        self.report(name)

    def fill(self, name: str, size: int, partial: Path) -> None:
        """Streams until all is there, however often the connection breaks, and checks the hash."""
        import httpx2

        stuck = 0
        partial.touch()
        while (start := partial.stat().st_size) < size:
            if stuck == TRIES:
                raise SourceError(f"The connection broke while {self.name} was fetched. {_KEPT}")
            with suppress(httpx2.RequestError):
                self.stream(name, partial, start)
            stuck = 0 if partial.stat().st_size > start else stuck + 1
            self.cancel.wait(PAUSE if stuck else 0)
        hasher = hashlib.sha256() if len(blob.name) == 64 else hashlib.sha1(b"blob %d\0" % size)
        with partial.open("rb") as file:
            right = hashlib.file_digest(file, lambda: hasher).hexdigest() == blob.name
        if not right:
            partial.unlink()
            raise SourceError(f"{name} of {self.name} arrived damaged and was dropped. Try again.")
