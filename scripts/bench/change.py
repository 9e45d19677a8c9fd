"""From a key press to the heatmap of another head, 128 tokens, in wall time inside the page.

Two servers run the same app, each with its own page; they take turns, and every key leads to a head
that neither has drawn before. One server has our settings, and its page keeps all patterns. The
other has Streamlit's defaults: a garbage collection after each run, a watcher on the source files,
and no gc.freeze; its page forgets the patterns and asks the server. The clock stops when the title
shows the new head and another heatmap has been painted.

The time of a collection grows with what is in memory, so there are two rows: a model of GPT-2
small's size in a folder and, without a goal, the bundled model. The server imports transformers for
both: for the first when it loads the model, for the second about two seconds after the first
picture, to compare the numbers on the page.

Two more rows for GPT-2 small's size: the heatmaps that a held key paints in a second, and the time
against BertViz's head_view, where the same text is on the screen and another layer is selected.
"""

import shutil
import tempfile
import time
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from bench import peers
from bench.common import (
    ROOT,
    TOKENIZER,
    WINDOW,
    NotMeasured,
    Row,
    at_least,
    chromium,
    factor,
    show,
    text_of,
)
from bench.compute import both
from bench.server import DRAWN, IDLE, MAP, PATIENCE, server
from mha_viz.head import Head

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

T = 128
LAYERS, HEADS = 4, 6  # of the bundled model, and as many of a larger one
AT_MOST = 50  # milliseconds until another head is painted
HELD = 60  # presses of a held key, one every REPEAT milliseconds
REPEAT = 33
AT_LEAST = 15  # heads a second while a key is held
WARM_UP = 3  # key presses that do not count
PAUSE = 1.0  # seconds between two key presses, so that a collection has ended
KEPT = ("theme", "browser", "server.address", "server.maxUploadSize")  # no effect on speed
NO_FREEZE = "import gc\ngc.freeze = lambda: None"
WHAT = f"Another head in the browser, T = {T}"
PRESS = f"""async ([key, name]) => {{
  const before = document.querySelector("{MAP}").href.baseVal;
  const named = () => document.querySelector(".lead b")?.textContent === name;
  const press = {{ key, bubbles: true, cancelable: true }};
  const start = performance.now();
  document.body.dispatchEvent(new KeyboardEvent("keydown", press));
  const shown = await ({DRAWN})((picture) => picture !== before && named());
  return performance.now() - start - shown;
}}"""
# The heatmaps that were painted while the keys came, in a second; the last one is awaited.
HOLD = f"""async ([keys, pause, name]) => {{
  const image = () => document.querySelector("{MAP}").href.baseVal;
  let painted = 0, last = image(), held = true;
  const count = () => {{
    if (image() !== last) {{ painted += 1; last = image(); }}
    if (held) requestAnimationFrame(count);
  }};
  requestAnimationFrame(count);
  const start = performance.now();
  for (const key of keys) {{
    const press = {{ key, bubbles: true, cancelable: true, repeat: true }};
    document.body.dispatchEvent(new KeyboardEvent("keydown", press));
    await new Promise((done) => setTimeout(done, pause));
  }}
  const seconds = (performance.now() - start) / 1000;
  held = false;
  await ({DRAWN})(() => document.querySelector(".lead b")?.textContent === name);
  return painted / seconds;
}}"""
LAYER = """async (layer) => {
  const start = performance.now();
  const select = document.querySelector("#layer");
  select.value = layer;
  select.dispatchEvent(new Event("change", { bubbles: true }));
  await new Promise(requestAnimationFrame);
  await new Promise(requestAnimationFrame);
  return performance.now() - start;
}"""
FORGET = """() => {
  mhaVizParcels.set("every pattern", null);
  document.dispatchEvent(new CustomEvent("mha-viz parcel", { detail: "every pattern" }));
}"""
NOTE = (
    "In the browser: from the key press until the new heatmap is painted, against the same app "
    "through the server, with Streamlit's default settings (garbage collection after each run, "
    "file watcher and all others except the theme) and without gc.freeze."
)


def change(quick: bool) -> Iterator[Row]:
    """Two rows, our settings against the defaults: GPT-2 small's size, and the bundled model."""
    keys = 9 if quick else LAYERS * HEADS - 1 - WARM_UP
    with gpt2_small() as folder:
        theirs, ours = time_keys(str(folder), keys)
        rate = heads_a_second(str(folder))
    yield at_least(f"{WHAT}, GPT-2 small", theirs, ours, 5, "ms", NOTE)
    limit = f"{AT_MOST} ms"
    yield Row(f"{WHAT}, at most", limit, show(ours, "ms"), "", limit, ours <= AT_MOST)
    per_second = f"{AT_LEAST} heads/s"
    yield Row(
        "A held key, at least", per_second, f"{rate:.0f} heads/s", "", per_second, rate >= AT_LEAST
    )
    bertviz = time_layers(3 if quick else peers.L - 1)
    what = f"Another head, T = {T}; BertViz's head_view, another layer"
    yield at_least(
        what, bertviz, ours, 5, "ms", "BertViz: from the change of the layer to two frames."
    )
    theirs, ours = time_keys("bundled", keys)
    ratio = f"{factor(theirs / ours)} faster"
    yield Row(f"{WHAT}, bundled", show(theirs, "ms"), show(ours, "ms"), ratio, "", None)


@contextmanager
def gpt2_small() -> Iterator[Path]:
    """A folder with a model of that size and the tokenizer of the bundled one."""
    theirs, _ = both()
    with tempfile.TemporaryDirectory() as folder:
        theirs.save_pretrained(folder)
        shutil.copy(TOKENIZER, folder)
        yield Path(folder)


def time_keys(model: str, n_keys: int) -> tuple[float, float]:
    """Median milliseconds from a key press to the picture: Streamlit's settings, then ours."""
    times: dict[str, list[float]] = {"theirs": [], "ours": []}
    with ExitStack() as stack:
        browser = stack.enter_context(chromium())
        theirs, _ = stack.enter_context(server(*defaults(), before=NO_FREEZE))
        ours, _ = stack.enter_context(server())
        pages = {"theirs": opened(browser, theirs, model), "ours": opened(browser, ours, model)}
        for key, name in list(snake())[: WARM_UP + n_keys]:
            for side, page in pages.items():
                time.sleep(PAUSE)
                if side == "theirs":
                    page.evaluate(FORGET)
                times[side].append(page.evaluate(PRESS, [key, name]))
                page.wait_for_selector(IDLE)
    return median(times["theirs"][WARM_UP:]), median(times["ours"][WARM_UP:])


def heads_a_second(model: str) -> float:
    """Heatmaps painted in a second while the arrow keys come as fast as a held key repeats."""
    steps = list(snake(peers.L, peers.H))[:HELD]
    with chromium() as browser, server() as (ours, _):
        page = opened(browser, ours, model)
        rate: float = page.evaluate(HOLD, [[key for key, _ in steps], REPEAT, steps[-1][1]])
    return rate


def time_layers(n_layers: int) -> float:
    """Median milliseconds until BertViz's head_view has drawn another layer of the same text."""
    page_html = peers.HEAD_VIEW.make(T)
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        file = peers.written(page_html, Path(folder))
        page = browser.new_context(viewport=WINDOW).new_page()
        page.set_default_timeout(1e3 * PATIENCE)
        page.goto(file.as_uri())
        page.wait_for_function(peers.HEAD_VIEW.drawn_when(T))
        return median(page.evaluate(LAYER, str(layer)) for layer in range(1, n_layers + 1))


def defaults() -> Iterator[str]:
    """Command line options that undo the project's settings."""
    from streamlit import config

    ours = tomllib.loads((ROOT / ".streamlit/config.toml").read_text(encoding="utf-8"))
    for section, options in ours.items():
        for name in options:
            key = f"{section}.{name}"
            if section in KEPT or key in KEPT:
                continue
            default = config.get_config_options()[key].default_val
            for value in default if isinstance(default, list) else [default]:
                yield from (f"--{key}", str(value))


def snake(n_layers: int = LAYERS, n_heads: int = HEADS) -> Iterator[tuple[str, str]]:
    """(key, head that it leads to): every head once, from L0 H0 on, along the rows in turn."""
    for layer in range(n_layers):
        forth = layer % 2 == 0
        heads = range(n_heads) if forth else range(n_heads - 1, -1, -1)
        for step, head in enumerate(heads):
            if layer or step:
                key = "ArrowDown" if not step else "ArrowRight" if forth else "ArrowLeft"
                yield key, Head(layer, head).label


def opened(browser: "Browser", address: str, model: str = "bundled") -> "Page":
    """The idle page, with the text of the benchmark and the first head selected."""
    page = browser.new_context(viewport=WINDOW).new_page()
    page.set_default_timeout(1e3 * PATIENCE)
    link = {"model": model, "text": text_of(T), "at": "L0H0"}
    page.goto(f"{address}/?{urlencode(link)}")
    page.wait_for_selector(MAP, state="attached")
    time.sleep(PAUSE)
    page.wait_for_selector(IDLE)
    title = page.inner_text(".lead")
    if f"{T} tokens" not in title or "L0 H0" not in title:
        raise NotMeasured(f"the page shows “{title}” instead of {T} tokens and L0 H0.")
    return page
