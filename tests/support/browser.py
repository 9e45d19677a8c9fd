"""A served app and a real browser, for the tests that a script alone cannot make."""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlencode, urlsplit

from playwright.sync_api import Browser, Dialog, Page, Request, ViewportSize, WebSocket
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

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
LAPTOP: ViewportSize = {"width": 1440, "height": 900}
EARLY = ForwardMsg.ScriptFinishedStatus.FINISHED_EARLY_FOR_RERUN  # for another run that was asked
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


def plot(key: str) -> str:
    """The selector of the Plotly figure in the container of that key."""
    return f".st-key-{key} .js-plotly-plot"


POINT = """([selector, x, y]) => {
  const figure = document.querySelector(selector), { xaxis, yaxis } = figure._fullLayout;
  const { left, top } = figure.getBoundingClientRect();
  return [left + xaxis._offset + xaxis.l2p(x), top + yaxis._offset + yaxis.l2p(y)];
}"""
FOLLOW = """(link) => {
  history.pushState(null, "", link);
  window.dispatchEvent(new PopStateEvent("popstate"));
}"""
SETTLED = """(idle) => new Promise((done, failed) => {
  const unfinished =
    "[data-testid^=stSkeleton], .stPlotlyChart:not(:has(.main-svg)), .parity.waiting, .sending";
  const find = (selector) => document.querySelector(selector);
  let timer;
  const end = () => { observer.disconnect(); clearTimeout(timer); clearTimeout(last); };
  const last = setTimeout(() => {
    end();
    failed(new Error(`still changing: ${find(idle)} ${find(unfinished)?.outerHTML}`));
  }, 60_000);
  const look = () => {
    if (!find(idle) || find(unfinished)) return wait();
    end();
    done();
  };
  const wait = () => {
    clearTimeout(timer);
    timer = setTimeout(look, 100);
  };
  const observer = new MutationObserver(wait);
  const every = { subtree: true, childList: true, characterData: true, attributes: true };
  observer.observe(document, every);
  wait();
})"""


class Tab:
    """The app in a page of the browser, and everything that went wrong in it.

    It reads the messages between page and server, so that `settle` can wait for an answer and needs
    no guess how long one takes.
    """

    # What is there once a page is.
    drawn = ".js-plotly-plot .main-svg, .stDataFrame, .journey, .code_view, .play"

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.address = address
        self.problems: list[str] = []
        self.n_sent = 0  # messages to the server
        self.answered = True
        self._begun = False
        self._listeners: dict[str, Callable[[Any], None]] = {
            "pageerror": lambda error: self.problems.append(f"error {error}"),
            "dialog": self._dialog,
            "request": self._request,
            "websocket": self._websocket,
        }
        for event, listener in self._listeners.items():
            page.on(event, listener)  # type: ignore[call-overload]

    def open(self, path: str = "", **link: str | list[str]) -> Self:
        """Opens the app's page of that path ("head") by a link, and waits until it is drawn."""
        self.page.goto(f"{self.address}/{path}?{urlencode(link, doseq=True)}")
        self.settle()
        return self

    def follow(self, **link: str | list[str]) -> Self:
        """Takes a link to the same page without loading the app again, as Back and Forward do."""
        self.page.evaluate(FOLLOW, f"?{urlencode(link, doseq=True)}")
        self.settle()
        return self

    def settle(self) -> None:
        """Waits until the server has answered, all is drawn and the page is still for a moment."""
        end = time.monotonic() + 60
        while True:
            self.page.wait_for_selector(self.drawn, state="attached", timeout=60_000)
            self.page.evaluate(SETTLED, IDLE)
            if self.answered:
                return
            assert time.monotonic() < end, "the app has not answered"

    def query(self) -> str:
        """What the address bar holds after the path."""
        return str(self.page.evaluate("location.search"))

    def point(self, figure: str, x: float, y: float) -> tuple[float, float]:
        """Where (x, y) in the coordinates of a figure is on the screen, scrolled to if need be."""
        self.page.locator(figure).scroll_into_view_if_needed()
        left, top = self.page.evaluate(POINT, [figure, x, y])
        return left, top

    def hover(self, figure: str, x: float, y: float) -> None:
        """Moves the mouse to a point of a figure."""
        left, top = self.point(figure, x, y)
        self.page.mouse.move(left - 2, top - 2)
        self.page.mouse.move(left, top)

    def click(self, figure: str, x: float, y: float) -> None:
        """Moves the mouse to a point of a figure and clicks."""
        self.hover(figure, x, y)
        self.page.mouse.click(*self.point(figure, x, y))

    def end(self) -> list[str]:
        """Listens no more; returns the problems."""
        for event, listener in self._listeners.items():
            self.page.remove_listener(event, listener)
        return self.problems

    def _dialog(self, dialog: Dialog) -> None:
        self.problems.append(f"dialog {dialog.message}")
        dialog.dismiss()

    def _request(self, request: Request) -> None:
        if not request.url.startswith((self.address, "data:", "blob:")):
            self.problems.append(f"asked {request.url}")

    def _websocket(self, socket: WebSocket) -> None:
        self.answered = self._begun = False
        socket.on("framesent", self._sent)
        socket.on("framereceived", self._received)

    def _sent(self, frame: bytes | str) -> None:
        message = BackMsg.FromString(frame if isinstance(frame, bytes) else frame.encode())
        self.n_sent += 1
        if message.WhichOneof("type") == "rerun_script":
            self.answered = self._begun = False

    def _received(self, frame: bytes | str) -> None:
        message = ForwardMsg.FromString(frame if isinstance(frame, bytes) else frame.encode())
        kind = message.WhichOneof("type")
        if kind == "new_session":
            self._begun = True
        elif kind == "script_finished" and message.script_finished != EARLY:
            self.answered = self._begun


class Pages:
    """Pages of the browser that tests use one after the other.

    A page that has loaded the app before does so in a third of the time: what was compiled is kept.
    """

    def __init__(self, chrome: Browser) -> None:
        self.chrome = chrome
        self.free: dict[str, list[Page]] = {}

    @contextmanager
    def lend(
        self,
        *,
        fresh: bool = False,
        color_scheme: str = "light",
        viewport: ViewportSize = LAPTOP,
        **options: Any,
    ) -> Iterator[Page]:
        """A page with that look, whose context has those options; a fresh one has no history."""
        kind = repr(sorted(options.items()))
        free = self.free.setdefault(kind, [])
        page = free.pop() if free and not fresh else self._new(options)
        page.set_viewport_size(viewport)
        page.emulate_media(color_scheme=color_scheme)  # type: ignore[arg-type]
        page.mouse.move(0, 0)
        yield page
        if fresh or page.is_closed():
            page.context.close()
            return
        if page.url.startswith("http"):
            page.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")
        page.goto("about:blank")
        free.append(page)

    def _new(self, options: dict[str, Any]) -> Page:
        return self.chrome.new_context(**options).new_page()


MAP, GRID = plot("head_map"), plot("head_grid")


class AttentionTab(Tab):
    """The Attention page: the heatmap of a head, the grid of all heads, the strip of tokens."""

    def settle(self) -> None:
        """Waits as for any page, and on the Attention page until the heatmap has axes."""
        has_heatmap = urlsplit(self.page.url).path == "/"
        self.drawn = f"{MAP} .hm" if has_heatmap else Tab.drawn
        super().settle()
        if has_heatmap:
            axes = "selector => document.querySelector(selector)?._fullLayout?.xaxis"
            self.page.wait_for_function(axes, arg=MAP)

    def chips(self) -> list[str]:
        """The tokens of the strip as they are written."""
        return self.page.locator(".chip .word").all_text_contents()

    def type(self, text: str) -> None:
        """Puts a text in place of the one in the sidebar."""
        area = self.page.get_by_label("Text", exact=True)
        area.fill(text)
        area.press("Control+Enter")
        self.settle()


Opener = Callable[..., AttentionTab]
