"""The app, started with `streamlit run` on a free port, and a test for when its page is drawn."""

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.common import ROOT, NotMeasured

PATIENCE = 120  # seconds
MAP = ".st-key-head_map .hm image"
IDLE = "[data-testid=stApp][data-test-script-state=notRunning]"
# Waits for a heatmap that passes the test, is decoded, and stays the same for STILL frames, since
# Streamlit first draws it hidden and then at its right size. Returns the milliseconds that it has
# been on the screen by then.
STILL = 6
DRAWN = f"""async (passes) => {{
  const end = performance.now() + {1000 * PATIENCE};
  let source = "", decoded = false, last = "", frames = 0, since = 0;
  while (frames < {STILL}) {{
    await new Promise(requestAnimationFrame);
    const image = document.querySelector("{MAP}");
    const box = image?.getBoundingClientRect();
    const href = image?.href.baseVal ?? "";
    if (href !== source) {{
      source = href;
      decoded = false;
      const copy = new Image();
      copy.src = href;
      copy.decode().then(() => {{ decoded ||= href === source; }}, () => null);
    }}
    const seen = box?.width && decoded && passes(href);
    const now = seen ? [href, box.x, box.y, box.width, box.height].join() : "";
    frames = now && now === last ? frames + 1 : 0;
    if (frames === 1) since = performance.now();
    last = now;
    if (performance.now() > end) throw new Error("the heatmap did not appear");
  }}
  return performance.now() - since;
}}"""
STREAMLIT = "from streamlit.web.cli import main\nmain(prog_name='streamlit')"


@contextmanager
def server(*options: str, before: str = "") -> Iterator[tuple[str, Path]]:
    """The address of a server, once its port answers, and its log.

    `options` go to `streamlit run`; the Python code `before` runs first in its process.
    """
    port = free_port()
    first = ["-c", f"{before}\n{STREAMLIT}"] if before else ["-m", "streamlit"]
    run = ["run", "app.py", "--server.headless", "true", "--server.port", str(port)]
    command = [sys.executable, *first, *run, *options]
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                command, cwd=ROOT, env=environment(), stdout=out, stderr=subprocess.STDOUT
            )
        try:
            wait_for(port, process, log)
            yield f"http://localhost:{port}", log
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def environment() -> dict[str, str]:
    """The environment of the user, without the limit to one thread of other measurements."""
    return {key: value for key, value in os.environ.items() if not key.endswith("_NUM_THREADS")}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return int(probe.getsockname()[1])


def wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    """Returns when the port answers. Raises NotMeasured if the server ends or does not answer."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        try:
            socket.create_connection(("localhost", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.01)
    output = log.read_text(encoding="utf-8", errors="replace")[-600:]
    raise NotMeasured(f"the app did not start. Its output:\n{output}")
