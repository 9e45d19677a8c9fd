"""From `streamlit run app.py` to the first figure of the bundled model, in wall time.

The clock starts with the server's process. As soon as its port answers, a blank page in a running
Chromium with an empty cache opens it; the clock stops when the heatmap has been painted. The
comparison is what every such app needs: `python -c "import torch, streamlit"`. One more start, not
timed, checks whether the server imports transformers by then; it does so later, in the background.
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from statistics import median
from typing import TYPE_CHECKING

from bench.common import ROOT, WINDOW, Row, chromium, factor, show
from bench.server import DRAWN, IDLE, MAP, PATIENCE, environment, server

if TYPE_CHECKING:
    from playwright.sync_api import Browser

FACTOR, SECONDS = 1.5, 2.0
SEEN = "transformers was imported"
WATCH = f"""
import sys
class Watch:
    def find_spec(name, path=None, target=None):
        if name.startswith("transformers."):
            print("{SEEN}", flush=True)
sys.meta_path.insert(0, Watch)
"""


def start(quick: bool) -> Iterator[Row]:
    """One row: the picture may take 1.5 times the imports plus 2 seconds."""
    imports, pictures = [], []
    with chromium() as browser:
        seen = imports_transformers(browser)
        import_both()
        for _ in range(2 if quick else 7):
            imports.append(import_both())
            pictures.append(first_picture(browser))
    baseline, picture = median(imports), median(pictures)
    limit = FACTOR * baseline + SECONDS
    yield Row(
        "First picture after `streamlit run`",
        show(baseline, "s"),
        show(picture, "s"),
        f"{factor((picture - SECONDS) / baseline)} + {SECONDS:g} s",
        f"at most {FACTOR:g}× + {SECONDS:g} s = {show(limit, 's')}, without transformers",
        picture <= limit and not seen,
        "First picture: wall time from the start of the process until the heatmap is drawn in a "
        "running Chromium; against `import torch, streamlit`. By then, the server "
        f"{'had' if seen else 'had not'} imported transformers.",
    )


def import_both() -> float:
    begun = time.perf_counter()
    command = [sys.executable, "-c", "import torch, streamlit"]
    subprocess.run(command, cwd=ROOT, env=environment(), check=True)
    return time.perf_counter() - begun


def first_picture(browser: "Browser") -> float:
    context = browser.new_context(viewport=WINDOW)
    page = context.new_page()
    begun = time.perf_counter()
    with server() as (address, _):
        page.goto(address, wait_until="commit", timeout=1e3 * PATIENCE)
        page.wait_for_selector(MAP, state="attached", timeout=1e3 * PATIENCE)
        shown: float = page.evaluate(f"({DRAWN})(() => true)") / 1e3
        taken: float = time.perf_counter() - begun - shown
        context.close()
    return taken


def imports_transformers(browser: "Browser") -> bool:
    """Whether the server has imported transformers by the time its page is drawn and idle."""
    page = browser.new_page()
    with server(before=WATCH) as (address, log):
        page.goto(address, timeout=1e3 * PATIENCE)
        page.wait_for_selector(MAP, state="attached", timeout=1e3 * PATIENCE)
        page.wait_for_selector(IDLE, timeout=1e3 * PATIENCE)
        page.close()
        return SEEN in log.read_text(encoding="utf-8", errors="replace")
