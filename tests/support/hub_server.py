"""A Hugging Face Hub on 127.0.0.1: the protocol that the real client needs, and its failures."""

import hashlib
import json
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

API = re.compile(r"/api/models/(?P<repo>[^/]+(?:/[^/]+)?)(?:/revision/[^/]+)?")
REFS = re.compile(r"/api/models/(?P<repo>[^/]+(?:/[^/]+)?)/refs")
RESOLVE = re.compile(r"/(?P<repo>[^/]+(?:/[^/]+)?)/resolve/(?P<revision>[^/]+)/(?P<file>.+)")
STORE = re.compile(r"/store/(?P<commit>.+)/(?P<file>[^/]+)")
CHUNK = 1 << 16


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    range: str | None
    encoding: str | None
    authorization: str | None

    @property
    def file(self) -> str:
        """The requested file, from either address; "" for the listing."""
        match = RESOLVE.fullmatch(self.path) or STORE.fullmatch(self.path)
        return match["file"] if match else ""


@dataclass
class HubServer:
    """Serves `repos` (name -> folder). A test sets what should go wrong, and reads the requests.

    As on the real Hub, `resolve` does not send a large file itself, but redirects to a store on
    another server.
    """

    repos: dict[str, Path] = field(default_factory=dict)
    branches: dict[str, dict[str, Path]] = field(default_factory=dict)  # of a repo, without main
    tags: dict[str, dict[str, Path]] = field(default_factory=dict)
    gated: set[str] = field(default_factory=set)
    status: int | None = None  # answer everything with this error
    page: bytes | None = None  # answer everything with this page
    break_at: dict[str, int] = field(default_factory=dict)  # file -> byte where it breaks
    break_once: bool = True
    ignore_ranges: bool = False
    corrupt: set[str] = field(default_factory=set)
    delay: float = 0.0  # seconds before each chunk
    requests: list[Request] = field(default_factory=list)
    served: Counter[str] = field(default_factory=Counter)  # file -> bytes of it that were sent
    url: str = ""
    store: str = ""

    @contextmanager
    def running(self) -> Iterator["HubServer"]:
        """Serves while the block runs."""
        with self.serving() as self.url, self.serving() as self.store:
            yield self

    @contextmanager
    def serving(self) -> Iterator[str]:
        """One server, in threads of its own; yields its address."""
        handler = type("Handler", (_Handler,), {"hub": self})
        with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            thread = threading.Thread(target=server.serve_forever, args=(0.01,))
            thread.start()
            try:
                yield f"http://127.0.0.1:{server.server_port}"
            finally:
                server.shutdown()
                thread.join()

    def revisions(self, repo: str) -> dict[str, Path]:
        """The folder of each branch, tag and commit of a repo."""
        named = {"main": self.repos[repo], **self.branches.get(repo, {}), **self.tags.get(repo, {})}
        return named | {commit_of(folder): folder for folder in named.values()}

    def asked_for(self, suffix: str) -> list[Request]:
        return [request for request in self.requests if request.file.endswith(suffix)]


def commit_of(folder: Path) -> str:
    return hashlib.sha1(str(folder).encode()).hexdigest()


def is_large(file: Path) -> bool:
    return file.suffix in {".safetensors", ".bin"}


def etag_of(file: Path) -> str:
    content = file.read_bytes()
    if is_large(file):
        return hashlib.sha256(content).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class _Handler(BaseHTTPRequestHandler):
    hub: HubServer
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        quoted = urlsplit(self.path).path
        path = unquote(quoted)
        headers = (self.headers[name] for name in ("range", "accept-encoding", "authorization"))
        self.hub.requests.append(Request(self.command, path, *headers))
        if self.hub.status is not None:
            return self.answer(self.hub.status)
        if self.hub.page is not None:
            return self.answer(200, self.hub.page)
        if match := REFS.fullmatch(path):
            return self.refs(match["repo"])
        if match := API.fullmatch(path):
            return self.listing(match["repo"])
        if match := RESOLVE.fullmatch(quoted):  # a revision may hold a quoted slash
            return self.resolve(match["repo"], unquote(match["revision"]), unquote(match["file"]))
        if match := STORE.fullmatch(path):
            every = {k: v for repo in self.hub.repos for k, v in self.hub.revisions(repo).items()}
            return self.send(every[match["commit"]] / match["file"], {})
        return self.answer(404)

    def refs(self, repo: str) -> None:
        if repo not in self.hub.repos:
            return self.answer(404, headers={"X-Error-Code": "RepoNotFound"})

        def listed(kind: dict[str, Path], prefix: str) -> list[dict[str, str]]:
            return [
                {"name": name, "ref": f"refs/{prefix}/{name}", "targetCommit": commit_of(folder)}
                for name, folder in kind.items()
            ]

        branches = {"main": self.hub.repos[repo], **self.hub.branches.get(repo, {})}
        tags = self.hub.tags.get(repo, {})
        found = {
            "branches": listed(branches, "heads"),
            "tags": listed(tags, "tags"),
            "converts": [],
        }
        return self.answer(200, json.dumps(found).encode())

    def listing(self, repo: str) -> None:
        if repo not in self.hub.repos:
            return self.answer(404, headers={"X-Error-Code": "RepoNotFound"})
        folder = self.hub.repos[repo]
        siblings = []
        for file in sorted(folder.iterdir()):
            size, etag = file.stat().st_size, etag_of(file)
            entry = {"rfilename": file.name, "size": size, "blobId": etag[:40]}
            if is_large(file):
                entry["lfs"] = {"sha256": etag, "size": size, "pointerSize": 134}
            siblings.append(entry)
        listing = {"id": repo, "sha": commit_of(folder), "siblings": siblings}
        return self.answer(200, json.dumps(listing).encode())

    def resolve(self, repo: str, revision: str, name: str) -> None:
        if repo not in self.hub.repos:
            return self.answer(404, headers={"X-Error-Code": "RepoNotFound"})
        if repo in self.hub.gated:
            return self.answer(403, headers={"X-Error-Code": "GatedRepo"})
        folder = self.hub.revisions(repo).get(revision)
        if folder is None:
            return self.answer(404, headers={"X-Error-Code": "RevisionNotFound"})
        headers = {"X-Repo-Commit": commit_of(folder)}
        file = folder / name
        if not file.is_file():
            return self.answer(404, headers=headers | {"X-Error-Code": "EntryNotFound"})
        if not is_large(file):
            return self.send(file, headers | {"ETag": f'"{etag_of(file)}"'})
        headers["X-Linked-Etag"] = f'"{etag_of(file)}"'
        headers["X-Linked-Size"] = str(file.stat().st_size)
        return self.answer(
            302,
            headers=headers | {"Location": f"{self.hub.store}/store/{commit_of(folder)}/{name}"},
        )

    def answer(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Connection", "close")  # so that no thread outlives its test
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def send(self, file: Path, headers: dict[str, str]) -> None:
        content = file.read_bytes()
        size, start = len(content), 0
        if (asked := self.headers.get("range")) and not self.hub.ignore_ranges:
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
            headers = headers | {"Content-Range": f"bytes {start}-{size - 1}/{size}"}
        if file.name in self.hub.corrupt:
            content = bytes(size)
        self.send_response(206 if start else 200)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Connection", "close")
        self.send_header("Content-Length", str(size - start))
        self.end_headers()
        if self.command == "GET":
            self.send_body(file.name, content, start)

    def send_body(self, name: str, content: bytes, start: int) -> None:
        hub = self.hub
        end = hub.break_at.get(name, len(content))
        if hub.break_once:
            hub.break_at.pop(name, None)
        try:
            for at in range(start, end, CHUNK):
                time.sleep(hub.delay)
                chunk = content[at : min(at + CHUNK, end)]
                hub.served[name] += len(chunk)
                self.wfile.write(chunk)
        except ConnectionError:  # the client has hung up
            self.close_connection = True
        if end < len(content):
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Logs nothing; the requests are in `requests`."""
