"""Downloads models from the Hub into huggingface_hub's cache; resumes partial downloads.

huggingface_hub provides the session, login, metadata, errors and the layout of the cache. Its
download function is not used: if stopped, it discards the partial file, which can be gigabytes, and
without a network it retries for minutes before it fails.
"""

import hashlib
import json
import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from mha_viz.checkpoints.config import read_config
from mha_viz.checkpoints.weight_files import find_weights
from mha_viz.errors import Cancelled, SourceError

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
from huggingface_hub.errors import (
    RemoteEntryNotFoundError,
)

from mha_viz.checkpoints.hub_cache import CONFIG, HASH, PARTIAL, CachedModel, link
from mha_viz.checkpoints.hub_errors import OFFLINE_MODELS, TIMEOUT, explained, not_the_hub
from mha_viz.checkpoints.hub_names import in_order, parse

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
# The files that complete a tokenizer come last: an interrupted download must not look complete.
_SETTINGS = ("added_tokens.json", "special_tokens_map.json", "tokenizer_config.json")
TOKENIZER = (*_SETTINGS, "merges.txt", "vocab.json", "tokenizer.json")
OTHER_TOKENIZERS = ("tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "vocab.txt")
TRIES, PAUSE = 4, 1.0  # attempts if the connection breaks, and the seconds between them

_SHARD = re.compile(r'"([A-Za-z0-9_][A-Za-z0-9_.-]*\.safetensors)"')
_KEPT = "The partial download is kept, and the next attempt resumes it."


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
    SourceError if the download fails; Cancelled after `cancel` is set. The next call resumes a
    partial download.
    """
    return _Download(repo_id, on_progress, cancel).obtain(weights=True)


def fetch_tokenizer(repo_id: str) -> Path:
    """A snapshot folder with the tokenizer of `repo_id`. Raises SourceError if there is none."""
    return _Download(repo_id).obtain(weights=False).folder


def is_cached(repo_id: str) -> bool:
    """Whether `fetch` needs no network; False for a malformed name."""
    try:
        at = parse(repo_id)
    except SourceError:
        return False
    return bool(CachedModel(at).find(weights=True))


def check_name(name: str) -> None:
    """Raises SourceError for a name that the Hub does not allow; makes no request."""
    parse(name)


def revisions(name: str) -> list[str]:
    """The branches and tags of a model, `main` first; a training run may have many.

    Asks the Hub. Raises SourceError if it does not answer.
    """
    asked = _Download(parse(name).repo)
    with explained(asked.name):
        asked.check_online()
        url = f"{asked.endpoint}/api/models/{asked.at.repo}/refs"
        with get_session().stream("GET", url, headers=asked.headers(), timeout=TIMEOUT) as response:
            hf_raise_for_status(response)
            try:
                found = json.loads(response.read())
                refs = [ref["name"] for kind in ("branches", "tags") for ref in found[kind]]
                return in_order([ref for ref in refs if isinstance(ref, str)])
            except (ValueError, KeyError, TypeError) as error:
                raise SourceError(not_the_hub(asked.name)) from error


class _Download:
    """The download of one model; `done` and `total` count its bytes."""

    def __init__(
        self, name: str, on_progress: OnBytes | None = None, cancel: threading.Event | None = None
    ) -> None:
        self.at = parse(name)
        self.name, self.cache = str(self.at), CachedModel(self.at)
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
        with explained(self.name):
            if folder := self.cache.find(weights=weights):
                return Fetched(folder, folder.name, from_cache=True)
            self.check_online()
            with self.turn():
                if folder := self.cache.find(weights=weights):
                    return Fetched(folder, folder.name, from_cache=True)
                self.download(weights)
                return Fetched(self.folder, self.folder.name, from_cache=False)

    def check_online(self) -> None:
        """Raises SourceError if the environment forbids requests."""
        if self.offline:
            raise SourceError(
                f"{self.name} is not in the cache, and HF_HUB_OFFLINE forbids downloads. "
                f"Unset it and try again. {OFFLINE_MODELS}"
            )

    def headers(self) -> dict[str, str]:
        """The headers of a request, with the user's token if there is one."""
        # The size and ranges of a compressed reply would not match the file's.
        headers = {"accept-encoding": "identity", "user-agent": "mha-viz"}
        if not constants.HF_HUB_DISABLE_IMPLICIT_TOKEN and (token := get_token()):
            headers["authorization"] = f"Bearer {token}"
        return headers

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
        """Gets the config, which may rule out the model, then the small files, then the weights."""
        names = self.weight_files() if weights else []
        words = [name for name in TOKENIZER if self.exists(name)]
        if not {"tokenizer.json", "vocab.json"}.intersection(words):
            words += [name for name in OTHER_TOKENIZERS if self.exists(name)]
        names = [*words, *names]
        if not names:
            raise SourceError(f"{self.name} has no tokenizer on the Hub. Choose another model.")
        sizes, blobs = zip(*(self.files[name] for name in names), strict=True)
        self.total = self.done + sum(sizes)
        self.cache.check_space(blobs, sum(sizes))
        for name in names:
            self.get(name)
        if weights:
            find_weights(self.folder, self.name, allow_pickle=False)
            self.cache.set_revision(self.folder.name)

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
        for other, kind in (("flax_model.msgpack", "Flax"), ("tf_model.h5", "TensorFlow")):
            if self.exists(other):
                raise SourceError(
                    f"{self.name} has its weights only in {other} ({kind}), which this app does "
                    "not read. Convert them with transformers 4, and open the folder."
                )
        raise SourceError(
            f"{self.name} has no weights as safetensors. Pickled weights (pytorch_model.bin) can "
            "run code, so they are not downloaded. Choose another model, or download it yourself "
            "and load its folder with allow_pickle=True."
        )

    def exists(self, name: str) -> bool:
        """Whether the Hub has the file; if so, records its commit, size and hash."""
        self.report(name)
        revision = self.folder.name or self.at.revision
        url = hf_hub_url(self.at.repo, name, revision=revision, endpoint=self.endpoint)
        token = self.headers().get("authorization", "").removeprefix("Bearer ") or False
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
            raise SourceError(not_the_hub(self.name))
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
        """Downloads until the file is complete, across broken connections; checks size and hash."""
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
            # The Hub names a large file by its SHA-256; only the size of a small one is checked.
            large = len(blob.name) == 64
            digest = hashlib.file_digest(file, "sha256").hexdigest() if large else blob.name
        if partial.stat().st_size != size or digest != blob.name:
            partial.unlink()
            raise SourceError(f"The downloaded {name} of {self.name} is damaged. Try again.")
        partial.replace(blob)

    def stream(self, name: str, partial: Path, start: int) -> None:
        url = f"{self.endpoint}/{self.at.repo}/resolve/{self.folder.name}/{name}"
        headers = self.headers() | ({"range": f"bytes={start}-"} if start else {})
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
