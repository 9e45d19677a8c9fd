"""A served app and a real browser, for the tests that a script alone cannot make."""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from playwright.sync_api import Browser, Page

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
]
IDLE = "[data-testid=stApp][data-test-script-state=notRunning]"


def chromium() -> str | None:
    """Where this machine's Chromium is, if it has one."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def served(log: Path, **environment: str) -> Iterator[str]:
    """The address of the checkout's app, which runs while the block does."""
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.headless", "true"]
    port = free_port()
    command += ["--server.port", str(port)]
    with running(command, port, log, cwd=ROOT, env={**os.environ, **environment}):
        yield f"http://localhost:{port}"


@contextmanager
def running(
    command: list[str], port: int, log: Path, *, cwd: Path, env: dict[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """A server that runs while the block does, from the time that its port answers."""
    with log.open("w") as out:
        process = subprocess.Popen(command, cwd=cwd, stdout=out, stderr=out, env=env)
        try:
            _wait(f"http://localhost:{port}/_stcore/health", process)
            yield process
        finally:
            process.terminate()
            process.wait(timeout=20)


def _wait(url: str, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise AssertionError("the app did not start")


class Tab:
    """A page of the app, and everything it did that it should not have."""

    drawn = ".js-plotly-plot .main-svg, .stDataFrame"  # what is there once a page is

    def __init__(self, chrome: Browser, address: str, **options: Any) -> None:
        self.context = chrome.new_context(**options)
        self.page: Page = self.context.new_page()
        self.address = address
        self.problems: list[str] = []
        self.page.on("pageerror", lambda error: self.problems.append(f"error {error}"))
        self.page.on("request", self._request)

    def _request(self, request: Any) -> None:
        if not request.url.startswith((self.address, "data:", "blob:")):
            self.problems.append(f"asked {request.url}")

    def open(self, path: str, **link: str | list[str]) -> "Tab":
        self.page.goto(f"{self.address}/{path}?{urlencode(link, doseq=True)}")
        self.settle()
        return self

    def settle(self) -> None:
        self.page.wait_for_selector(self.drawn, state="attached", timeout=60_000)
        self.page.wait_for_selector(IDLE, state="attached", timeout=60_000)
        self.page.wait_for_timeout(400)
