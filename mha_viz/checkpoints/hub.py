"""Fetches one model of the hub into huggingface_hub's cache: what is needed, and no byte twice.

Session, login, questions, errors and the cache's layout are huggingface_hub's. Only its download
function is not used: when it is stopped it drops what had arrived, up to gigabytes, and without a
network it tries for minutes before it says so.
"""

import hashlib
import os
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from mha_viz.checkpoints.config import read_config
from mha_viz.checkpoints.tensors import find_weights
from mha_viz.errors import Cancelled, CheckpointError, MhaVizError, SourceError

os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
import httpx2
from filelock import FileLock, Timeout
from huggingface_hub import (
    constants,
    get_hf_file_metadata,
    get_session,
    get_token,
    hf_hub_url,
    hf_raise_for_status,
)
from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, RemoteEntryNotFoundError

CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
# What makes a tokenizer comes last: a fetch that was cut short must not look complete.
_SETTINGS = ("added_tokens.json", "special_tokens_map.json", "tokenizer_config.json")
TOKENIZER = (*_SETTINGS, "merges.txt", "vocab.json", "tokenizer.json")
PARTIAL = ".incomplete"
TIMEOUT = 10.0  # seconds without a byte
TRIES, PAUSE = 4, 1.0  # how often, and how many seconds apart, a dead connection is tried again

_PART = r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,94}[A-Za-z0-9_])?"
_REPO_ID = re.compile(rf"(?!.*(?:--|\.\.))(?:{_PART}/)?{_PART}(?<!\.git)")
_SHARD = re.compile(r'"([A-Za-z0-9_][A-Za-z0-9_.-]*\.safetensors)"')
_HASH = re.compile(r"[\w.-]{1,128}", re.ASCII)  # becomes a file's name: no way out of the folder
_ELSE = "The bundled model, and any that was fetched before, work without the hub."
_KEPT = "What has arrived is kept: the next try goes on from there."


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

    Blocks, and calls `on_progress` in this thread for every chunk. Raises NotGPT2 or
    CheckpointError for what config.json says before any weights are asked for, SourceError if the
    model cannot be had, Cancelled after `cancel`. The next call goes on from what has arrived.
    """
    return _Model(repo_id, on_progress or (lambda _: None), cancel or threading.Event()).obtain()


def fetch_tokenizer(repo_id: str) -> Path:
    """A snapshot folder with the tokenizer of `repo_id`; raises SourceError if it cannot be had."""
    return _Model(repo_id, lambda _: None, threading.Event()).obtain(weights=False).folder


def is_cached(repo_id: str) -> bool:
    """Whether `fetch` would need no network. A malformed name is not cached."""
    return bool(_REPO_ID.fullmatch(repo_id)) and bool(
        _Model(repo_id, lambda _: None, threading.Event()).cached(weights=True)
    )


def check_name(repo_id: str) -> None:
    """Raises SourceError for what can be no name on the hub; asks nobody."""
    if not _REPO_ID.fullmatch(repo_id):
        raise SourceError(
            f"{repo_id[:100]!r} is not a name on the model hub. Give it as `gpt2` or "
            "`owner/name`, with letters, digits, `-`, `_` and `.` only."
        )


class _Model:
    """One model, in the cache and on the hub; `done` and `total` count the bytes of a download."""

    def __init__(
        self, name: str, on_progress: Callable[[Progress], None], cancel: threading.Event
    ) -> None:
        check_name(name)
        # huggingface_hub read the environment when it was imported; this follows it as it is now.
        env = os.environ.get
        cache = env("HF_HUB_CACHE") or (f"{env('HF_HOME')}/hub" if env("HF_HOME") else None)
        cache = os.path.expandvars(os.path.expanduser(cache or constants.HF_HUB_CACHE))
        self.root = Path(cache, f"models--{name.replace('/', '--')}")
        self.endpoint = (env("HF_ENDPOINT") or constants.ENDPOINT).rstrip("/")
        offline = env("HF_HUB_OFFLINE") or env("TRANSFORMERS_OFFLINE") or ""
        self.offline = offline.upper() in constants.ENV_VARS_TRUE_VALUES or constants.HF_HUB_OFFLINE
        self.name, self.on_progress, self.cancel = name, on_progress, cancel
        self.done = self.total = 0
        self.files: dict[str, tuple[int, Path]] = {}  # name -> size, and its blob, named by hash
        self.folder = Path()  # the snapshot, once the hub has named a commit

    def obtain(self, *, weights: bool = True) -> Fetched:
        with _explained(self.name):
            if folder := self.cached(weights):
                return Fetched(folder, folder.name, from_cache=True)
            if self.offline:
                raise SourceError(f"HF_HUB_OFFLINE is set, and {self.name} is not cached. {_ELSE}")
            with self.turn():
                if folder := self.cached(weights):
                    return Fetched(folder, folder.name, from_cache=True)
                self.download(weights)
                return Fetched(self.folder, self.folder.name, from_cache=False)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Of several threads or processes that want one model, one fetches it; the others wait."""
        locks = self.root.parent / ".locks" / self.root.name
        locks.mkdir(parents=True, exist_ok=True)
        lock = FileLock(locks / "mha-viz.lock")
        while not lock.is_locked:
            self.report(CONFIG)
            with suppress(Timeout):
                lock.acquire(timeout=0.1)
        try:
            yield
        finally:
            lock.release()

    def cached(self, weights: bool) -> Path | None:
        """A complete snapshot: that of `main` if possible, else the newest."""

        def complete(folder: Path) -> bool:
            def holds(*names: str, where: Path = folder) -> bool:
                return all((where / name).is_file() for name in names)

            tokenizer = holds("tokenizer.json") or holds("vocab.json", "merges.txt")
            missing = self.root / ".no_exist" / folder.name
            absent = holds("tokenizer.json", "vocab.json", where=missing)
            if weights and holds(CONFIG) and (tokenizer or absent):
                with suppress(SourceError, CheckpointError):
                    return bool(find_weights(folder, self.name, allow_pickle=False))
            return tokenizer and not weights

        main = self.root / "refs" / "main"
        named = main.read_text(errors="replace").strip() if main.is_file() else ""
        folders = filter(complete, (self.root / "snapshots").glob("*"))
        return max(folders, key=lambda one: (one.name == named, one.stat().st_mtime), default=None)

    def download(self, weights: bool) -> None:
        """Config first, which may refuse the model; then everything small; then the weights."""
        # Of a compressed answer neither size nor range would be those of the file.
        self.headers = {"accept-encoding": "identity", "user-agent": "mha-viz"}
        if not constants.HF_HUB_DISABLE_IMPLICIT_TOKEN and (token := get_token()):
            self.headers["authorization"] = f"Bearer {token}"
        names = self.weights() if weights else []
        names = [*(name for name in TOKENIZER if self.ask(name)), *names]
        if not names:
            raise SourceError(f"{self.name} has no tokenizer on the hub. Choose another model.")
        self.total = self.done + sum(self.files[name][0] for name in names)
        self.check_space(names)
        for name in names:
            self.get(name)
        if weights:
            find_weights(self.folder, self.name, allow_pickle=False)
            main = self.root / "refs" / "main"
            main.parent.mkdir(exist_ok=True)
            main.write_text(self.folder.name)

    def weights(self) -> list[str]:
        """The files that hold the weights, once config.json has been read and found right."""
        if not self.ask(CONFIG):
            raise SourceError(f"{self.name} has no config.json, so it is no model to be read here.")
        self.get(CONFIG)
        read_config(self.folder, self.name)
        if self.ask(WEIGHTS):
            return [WEIGHTS]
        if self.ask(INDEX):
            self.get(INDEX)
            shards = sorted({*_SHARD.findall((self.folder / INDEX).read_text(errors="replace"))})
            return [shard for shard in shards if self.ask(shard)]
        raise SourceError(
            f"{self.name} has no weights as safetensors. Pickled ones (pytorch_model.bin) can run "
            "code and are not fetched: choose another model, or download it and allow its folder."
        )

    def ask(self, name: str) -> bool:
        """Learns the commit, and a file's size and hash; False if the hub has no such file."""
        self.report(name)
        revision = self.folder.name or "main"
        url = hf_hub_url(self.name, name, revision=revision, endpoint=self.endpoint)
        token = self.headers.get("authorization", "").removeprefix("Bearer ") or False
        try:
            about = get_hf_file_metadata(
                url, token=token, timeout=TIMEOUT, endpoint=self.endpoint, user_agent="mha-viz"
            )
        except RemoteEntryNotFoundError as error:
            commit = error.response.headers.get("X-Repo-Commit", "")
            if _HASH.fullmatch(commit):  # huggingface_hub notes what is not there the same way
                note = self.root / ".no_exist" / commit / name
                note.parent.mkdir(parents=True, exist_ok=True)
                note.touch()
            return False
        commit, etag = about.commit_hash or "", about.etag or ""
        if not (_HASH.fullmatch(commit) and _HASH.fullmatch(etag)) or about.size is None:
            raise SourceError(
                f"What answered for {self.name} is not the model hub. A network that asks for a "
                f"login first does that: open a browser and see. {_ELSE}"
            )
        self.folder = self.root / "snapshots" / commit
        self.files[name] = about.size, self.root / "blobs" / etag
        return True

    def check_space(self, names: list[str]) -> None:
        """Refuses now what the disk could not hold later."""
        blobs = [self.files[name][1] for name in names]
        files = [*blobs, *(blob.with_suffix(PARTIAL) for blob in blobs)]
        kept = sum(file.stat().st_size for file in files if file.is_file())
        missing = self.total - self.done - kept
        free = shutil.disk_usage(self.root).free
        if missing > free:
            raise SourceError(
                f"{self.name} needs {missing / 1e6:,.0f} MB more, and the disk of the cache has "
                f"{free / 1e6:,.0f} MB. Free some, or set HF_HUB_CACHE to another disk."
            )

    def get(self, name: str) -> None:
        """Puts one file into the snapshot: a link to its blob, as huggingface_hub does it."""
        link, (size, blob) = self.folder / name, self.files[name]
        if not link.is_file():
            blob.parent.mkdir(parents=True, exist_ok=True)
            link.parent.mkdir(parents=True, exist_ok=True)
            if not blob.is_file():
                self.fill(name, size, blob)
            link.unlink(missing_ok=True)
            try:
                link.symlink_to(os.path.relpath(blob, link.parent))
            except OSError:  # Windows, without the right to make links
                blob.replace(link)
        self.done += size
        self.report(name)

    def fill(self, name: str, size: int, blob: Path) -> None:
        """Streams until all is there, however often the connection breaks, and checks the hash."""
        partial, stuck = blob.with_suffix(PARTIAL), 0
        partial.touch()
        while (start := partial.stat().st_size) < size:
            if stuck == TRIES:
                raise SourceError(f"The connection broke while {self.name} was fetched. {_KEPT}")
            self.report(name, start)
            with suppress(httpx2.RequestError):
                self.stream(name, partial, start)
            stuck = 0 if partial.stat().st_size > start else stuck + 1
            self.cancel.wait(PAUSE if stuck else 0)
        with partial.open("rb") as file:
            # The hub names a large file by its SHA-256.
            large = len(blob.name) == 64
            digest = hashlib.file_digest(file, "sha256").hexdigest() if large else blob.name
        if partial.stat().st_size != size or digest != blob.name:
            partial.unlink()
            raise SourceError(f"{name} of {self.name} arrived damaged. Try again.")
        partial.replace(blob)

    def stream(self, name: str, partial: Path, start: int) -> None:
        url = f"{self.endpoint}/{self.name}/resolve/{self.folder.name}/{name}"
        headers = self.headers | ({"range": f"bytes={start}-"} if start else {})
        with get_session().stream("GET", url, headers=headers, timeout=TIMEOUT) as answer:
            hf_raise_for_status(answer)
            with partial.open("ab" if answer.status_code == 206 else "wb") as file:
                for chunk in answer.iter_bytes():
                    file.write(chunk)
                    self.report(name, file.tell())

    def report(self, name: str, here: int = 0) -> None:
        if self.cancel.is_set():
            raise Cancelled(f"Fetching {self.name} was stopped. {_KEPT}")
        self.on_progress(Progress(self.done + here, self.total, name))


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Whatever the network and the disk raise becomes a SourceError that says what to do."""
    try:
        yield
    except MhaVizError:
        raise
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        status = error.response.status_code if isinstance(error, HfHubHTTPError) else 0
        if isinstance(error, GatedRepoError):
            why = "is gated: ask for access on its page, then log in with `hf auth login`."
        elif status in (401, 404):
            why = "is unknown or private: check the spelling, or log in with `hf auth login`."
        elif status:
            why = f"cannot be had: the model hub answers with error {status}. Try later. {_ELSE}"
        elif isinstance(error, OSError):
            why = f"cannot be cached ({error.strerror}). Set HF_HUB_CACHE to another folder."
        else:
            why = f"is out of reach: no network, or no answer for {TIMEOUT:.0f} seconds. {_ELSE}"
        raise SourceError(f"{name} {why}") from error
