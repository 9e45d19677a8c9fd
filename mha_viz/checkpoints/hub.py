"""Downloads a model from the Hugging Face Hub into huggingface_hub's cache, each byte only once.

huggingface_hub provides the session, login, metadata, errors and the layout of the cache. Its
download function is not used: when stopped, it drops what has arrived, which can be gigabytes, and
without a network it retries for minutes before it reports that.
"""

import hashlib
import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from mha_viz.checkpoints.config import read_config
from mha_viz.checkpoints.tensors import find_weights
from mha_viz.errors import Cancelled, MhaVizError, SourceError

os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
import httpx2
from filelock import Timeout
from huggingface_hub import (
    constants,
    get_hf_file_metadata,
    get_session,
    get_token,
    hf_hub_url,
    hf_raise_for_status,
)
from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, RemoteEntryNotFoundError

from mha_viz.checkpoints.hub_cache import CONFIG, HASH, PARTIAL, CachedModel, link

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
# The files that complete a tokenizer come last: an interrupted download must not look complete.
_SETTINGS = ("added_tokens.json", "special_tokens_map.json", "tokenizer_config.json")
TOKENIZER = (*_SETTINGS, "merges.txt", "vocab.json", "tokenizer.json")
TIMEOUT = 10.0  # seconds without any data
TRIES, PAUSE = 4, 1.0  # attempts if the connection breaks, and the seconds between them

_PART = r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,94}[A-Za-z0-9_])?"
_REPO_ID = re.compile(rf"(?!.*(?:--|\.\.))(?:{_PART}/)?{_PART}(?<!\.git)")
_SHARD = re.compile(r'"([A-Za-z0-9_][A-Za-z0-9_.-]*\.safetensors)"')
_OFFLINE_MODELS = "The bundled model and models downloaded before work without the Hub."
_KEPT = "What has arrived is kept, and the next try continues from there."


@dataclass(frozen=True, slots=True)
class Progress:
    """The bytes that have arrived, over all files; `total` is 0 while it is unknown."""

    done: int
    total: int
    file: str


OnBytes = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Fetched:
    """A snapshot folder with config, weights and tokenizer, and its commit."""

    folder: Path
    revision: str
    from_cache: bool


def fetch(
    repo_id: str,
    *,
    on_progress: OnBytes | None = None,
    cancel: threading.Event | None = None,
) -> Fetched:
    """The model `repo_id`: from the cache without any request, or else from the Hub.

    Blocks, and calls `on_progress` in this thread for every chunk. Raises NotGPT2 or
    CheckpointError if config.json rules the model out, before any weights are requested;
    SourceError if the download fails; Cancelled after `cancel`. The next call continues with what
    has arrived.
    """
    return _Download(repo_id, on_progress, cancel).obtain(weights=True)


def fetch_tokenizer(repo_id: str) -> Path:
    """A snapshot folder with the tokenizer of `repo_id`. Raises SourceError if there is none."""
    return _Download(repo_id).obtain(weights=False).folder


def is_cached(repo_id: str) -> bool:
    """Whether `fetch` needs no network. A malformed name is not cached."""
    return bool(_REPO_ID.fullmatch(repo_id)) and bool(CachedModel(repo_id).find(weights=True))


def check_name(repo_id: str) -> None:
    """Raises SourceError for a name that the Hub does not allow; makes no request."""
    if not _REPO_ID.fullmatch(repo_id):
        raise SourceError(
            f"{repo_id[:100]!r} is not a name on the Hugging Face Hub. Write it as `gpt2` or "
            "`owner/name`, with letters, digits, `-`, `_` and `.` only."
        )


class _Download:
    """The download of one model; `done` and `total` count its bytes."""

    def __init__(
        self, name: str, on_progress: OnBytes | None = None, cancel: threading.Event | None = None
    ) -> None:
        check_name(name)
        self.name, self.cache = name, CachedModel(name)
        self.on_progress, self.cancel = on_progress, cancel or threading.Event()
        # huggingface_hub read the environment on import; this uses its current values.
        env = os.environ.get
        self.endpoint = (env("HF_ENDPOINT") or constants.ENDPOINT).rstrip("/")
        offline = env("HF_HUB_OFFLINE") or env("TRANSFORMERS_OFFLINE") or ""
        self.offline = offline.upper() in constants.ENV_VARS_TRUE_VALUES or constants.HF_HUB_OFFLINE
        self.done = self.total = 0
        self.files: dict[str, tuple[int, Path]] = {}  # name -> size and blob
        self.folder = Path()  # the snapshot, once the Hub has named a commit

    def obtain(self, *, weights: bool) -> Fetched:
        with _explained(self.name):
            if folder := self.cache.find(weights=weights):
                return Fetched(folder, folder.name, from_cache=True)
            if self.offline:
                raise SourceError(
                    f"{self.name} is not in the cache, and HF_HUB_OFFLINE forbids downloads. "
                    f"Unset it and try again. {_OFFLINE_MODELS}"
                )
            with self.turn():
                if folder := self.cache.find(weights=weights):
                    return Fetched(folder, folder.name, from_cache=True)
                self.download(weights)
                return Fetched(self.folder, self.folder.name, from_cache=False)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Lets one of several threads or processes download the model while the others wait."""
        lock = self.cache.lock()
        while not lock.is_locked:
            self.report(CONFIG)
            with suppress(Timeout):
                lock.acquire(timeout=0.1)
        try:
            yield
        finally:
            lock.release()

    def download(self, weights: bool) -> None:
        """Config first, which may rule the model out; then the small files; then the weights."""
        # The size and ranges of a compressed reply would not match the file's.
        self.headers = {"accept-encoding": "identity", "user-agent": "mha-viz"}
        if not constants.HF_HUB_DISABLE_IMPLICIT_TOKEN and (token := get_token()):
            self.headers["authorization"] = f"Bearer {token}"
        names = self.weight_files() if weights else []
        names = [*(name for name in TOKENIZER if self.exists(name)), *names]
        if not names:
            raise SourceError(f"{self.name} has no tokenizer on the Hub. Choose another model.")
        sizes, blobs = zip(*(self.files[name] for name in names), strict=True)
        self.total = self.done + sum(sizes)
        self.cache.check_space(blobs, sum(sizes))
        for name in names:
            self.get(name)
        if weights:
            find_weights(self.folder, self.name, allow_pickle=False)
            self.cache.set_main(self.folder.name)

    def weight_files(self) -> list[str]:
        """The files that hold the weights, after config.json has been checked."""
        if not self.exists(CONFIG):
            raise SourceError(
                f"{self.name} has no config.json, so this app cannot read it. Choose another model."
            )
        self.get(CONFIG)
        read_config(self.folder, self.name)
        if self.exists(WEIGHTS):
            return [WEIGHTS]
        if self.exists(INDEX):
            self.get(INDEX)
            shards = sorted({*_SHARD.findall((self.folder / INDEX).read_text(errors="replace"))})
            return [shard for shard in shards if self.exists(shard)]
        raise SourceError(
            f"{self.name} has no weights as safetensors. Pickled weights (pytorch_model.bin) can "
            "run code, so they are not downloaded. Choose another model, or download it yourself "
            "and load its folder with allow_pickle=True."
        )

    def exists(self, name: str) -> bool:
        """Whether the Hub has the file; if so, notes its commit, size and hash."""
        self.report(name)
        revision = self.folder.name or "main"
        url = hf_hub_url(self.name, name, revision=revision, endpoint=self.endpoint)
        token = self.headers.get("authorization", "").removeprefix("Bearer ") or False
        try:
            metadata = get_hf_file_metadata(
                url, token=token, timeout=TIMEOUT, endpoint=self.endpoint, user_agent="mha-viz"
            )
        except RemoteEntryNotFoundError as error:
            commit = error.response.headers.get("X-Repo-Commit", "")
            if HASH.fullmatch(commit):
                self.cache.note_absent(commit, name)
            return False
        commit, etag = metadata.commit_hash or "", metadata.etag or ""
        if not (HASH.fullmatch(commit) and HASH.fullmatch(etag)) or metadata.size is None:
            raise SourceError(
                f"The reply for {self.name} did not come from the Hugging Face Hub. Your network "
                f"may need a login: open a browser and check. {_OFFLINE_MODELS}"
            )
        self.folder = self.cache.snapshot(commit)
        self.files[name] = metadata.size, self.cache.blob(etag)
        return True

    def get(self, name: str) -> None:
        """Puts one file into the snapshot."""
        path, (size, blob) = self.folder / name, self.files[name]
        if not path.is_file():
            if not blob.is_file():
                blob.parent.mkdir(parents=True, exist_ok=True)
                self.fill(name, size, blob)
            link(path, blob)
        self.done += size
        self.report(name)

    def fill(self, name: str, size: int, blob: Path) -> None:
        """Streams until the file is complete, over broken connections, and checks its hash."""
        partial, failures = blob.with_suffix(PARTIAL), 0
        partial.touch()
        while (start := partial.stat().st_size) < size:
            if failures == TRIES:
                raise SourceError(f"The connection broke while downloading {self.name}. {_KEPT}")
            self.report(name, start)
            with suppress(httpx2.RequestError):
                self.stream(name, partial, start)
            failures = 0 if partial.stat().st_size > start else failures + 1
            self.cancel.wait(PAUSE if failures else 0)
        with partial.open("rb") as file:
            # The Hub names a large file by its SHA-256.
            large = len(blob.name) == 64
            digest = hashlib.file_digest(file, "sha256").hexdigest() if large else blob.name
        if partial.stat().st_size != size or digest != blob.name:
            partial.unlink()
            raise SourceError(f"{name} of {self.name} arrived damaged. Try again.")
        partial.replace(blob)

    def stream(self, name: str, partial: Path, start: int) -> None:
        url = f"{self.endpoint}/{self.name}/resolve/{self.folder.name}/{name}"
        headers = self.headers | ({"range": f"bytes={start}-"} if start else {})
        with get_session().stream("GET", url, headers=headers, timeout=TIMEOUT) as response:
            hf_raise_for_status(response)
            with partial.open("ab" if response.status_code == 206 else "wb") as file:
                for chunk in response.iter_bytes():
                    file.write(chunk)
                    self.report(name, file.tell())

    def report(self, name: str, in_file: int = 0) -> None:
        if self.cancel.is_set():
            raise Cancelled(f"The download of {self.name} was stopped. {_KEPT}")
        if self.on_progress:
            self.on_progress(Progress(self.done + in_file, self.total, name))


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Turns errors of the network and the disk into a SourceError that says what to do."""
    try:
        yield
    except MhaVizError:
        raise
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        raise SourceError(_explanation(name, error)) from error


def _explanation(name: str, error: Exception) -> str:
    status = error.response.status_code if isinstance(error, HfHubHTTPError) else 0
    login = "log in with `hf auth login`"
    if isinstance(error, GatedRepoError):
        return f"{name} is gated. Request access on its page, then {login}."
    if status in (401, 404):
        return f"{name} does not exist or is private. Check the spelling, or {login}."
    if status:
        return (
            f"{name} could not be downloaded: the Hugging Face Hub returned error {status}. "
            f"Try again later. {_OFFLINE_MODELS}"
        )
    if isinstance(error, OSError):
        return (
            f"{name} could not be written to the cache ({error.strerror}). "
            "Set HF_HUB_CACHE to another folder."
        )
    return (
        f"{name} could not be downloaded: there is no network, or the Hub did not answer within "
        f"{TIMEOUT:.0f} seconds. Try again later. {_OFFLINE_MODELS}"
    )
