"""Texts to train on: files in every encoding, and the one download."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from mha_viz.app.pages.training import texts
from mha_viz.errors import SourceError, TextError


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("naïve\n".encode(), ("naïve\n", "utf-8-sig")),
        ("naïve".encode("utf-8-sig"), ("naïve", "utf-8-sig")),
        ("naïve 🙂".encode("utf-16"), ("naïve 🙂", "utf-16")),
        ("naïve".encode("cp1252"), ("naïve", "cp1252")),
        (b"a\r\nb\rc", ("a\nb\nc", "utf-8-sig")),
    ],
)
def test_a_file_is_read_in_its_encoding(data: bytes, expected: tuple[str, str]) -> None:
    assert texts.decode(data) == expected


@pytest.mark.parametrize("data", [b"\x89PNG\r\n\0\0", b"\xff\xfea", b"\x81\x8d\xff"])
def test_a_file_that_is_not_text_is_rejected(data: bytes) -> None:
    with pytest.raises(TextError, match="not plain text"):
        texts.decode(data)


@dataclass
class Answer:
    """The reply of a server on this machine."""

    body: bytes = b""
    status: int = 200
    pause: float = 0.0  # before each byte

    @contextmanager
    def served(self) -> Iterator[str]:
        answer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(answer.status)
                self.end_headers()
                step = 1 if answer.pause else len(answer.body) or 1
                for i in range(0, len(answer.body), step):
                    time.sleep(answer.pause)
                    try:
                        self.wfile.write(answer.body[i : i + step])
                        self.wfile.flush()
                    except OSError:
                        return

            def log_message(self, *_: object) -> None:
                pass

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            thread = threading.Thread(target=server.serve_forever, args=(0.01,))
            thread.start()
            try:
                yield f"http://127.0.0.1:{server.server_port}/input.txt"
            finally:
                server.shutdown()
                thread.join()


def test_the_full_text_is_downloaded() -> None:
    text = "First Citizen:\n" * 500
    with Answer(text.encode()).served() as url:
        assert texts.download(url, len(text)) == text


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer(b"<html>log in</html>"), "19 bytes instead of 7,500"),
        (Answer(b"x" * 9_000), "more than 7,500 bytes"),
        (Answer(b"", status=404), "404"),
        (Answer(b"", status=503), "503"),
    ],
)
def test_any_other_reply_is_rejected(answer: Answer, said: str) -> None:
    with answer.served() as url, pytest.raises(SourceError, match=said):
        texts.download(url, 7_500)


def test_a_server_that_is_too_slow_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "DEADLINE", 0.2)
    with (
        Answer(b"x" * 100, pause=0.05).served() as url,
        pytest.raises(SourceError, match="not finished"),
    ):
        texts.download(url, 100)


def test_a_server_that_is_silent_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "SILENCE", 0.1)
    with Answer(b"x", pause=1.0).served() as url, pytest.raises(SourceError, match="timed out"):
        texts.download(url, 1)


def test_without_a_network_the_message_offers_another_text() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
    with pytest.raises(SourceError, match="train on another text"):
        texts.download(f"http://127.0.0.1:{port}/input.txt", 1)
