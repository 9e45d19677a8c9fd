"""All 144 heads of GPT-2 small in one picture, 64 tokens: ours against BertViz's model_view.

Both draw the same patterns. Ours is the figure as JSON, pooled as on the page (the note gives the
size with a pixel for every weight). BertViz's is its HTML, which loads three libraries from a CDN;
here they come from the npm registry and are beside the page.

Drawing time: ours from Plotly.newPlot, in a page that has loaded plotly.js, until the image is
decoded and two frames have passed; BertViz's from the start of its page until all lines exist and
two frames have passed. The note also gives ours from the start of a page, plotly.js included.
"""

import html
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from bench import compute
from bench.common import ROOT, WINDOW, NotMeasured, Row, at_least, chromium, factor, show
from mha_viz.figures.grid import head_grid, thumbnail_size
from mha_viz.figures.theme import LIGHT
from mha_viz.trace import Trace

if TYPE_CHECKING:
    from playwright.sync_api import Browser

T = 64
LIMIT = 300_000  # bytes
LIBRARIES = {  # npm package: (file in it, name beside the page, address in BertViz's HTML)
    "requirejs@2.3.6": ("require.js", "require.js", "require.js/2.3.6/require.min.js"),
    "d3@5.7.0": ("dist/d3.min.js", "d3.min.js", "d3/5.7.0/d3.min"),
    "jquery@2.1.4": ("dist/jquery.min.js", "jquery.min.js", "jquery/2.0.0/jquery.min"),
}
NETWORK = "https://cdnjs.cloudflare.com/ajax/libs/"
PATIENCE = 10 * 60_000  # milliseconds
OURS = """<!doctype html><meta charset="utf-8"><body><div id="plot"></div>
<script src="plotly.min.js"></script>
<script type="application/json" id="figure">{figure}</script>
<script>
const frame = () => new Promise(requestAnimationFrame);
(async () => {{
  const start = performance.now();
  const {{ data, layout }} = JSON.parse(document.getElementById("figure").textContent);
  await Plotly.newPlot("plot", data, layout, {{ displayModeBar: false }});
  for (const image of document.querySelectorAll("#plot image")) {{
    const copy = new Image();
    copy.src = image.href.baseVal;
    await copy.decode();
  }}
  await frame();
  await frame();
  const end = performance.now();
  window.drawn = [end - start, end, document.querySelectorAll("#plot image").length];
}})();
</script>"""
WATCH = f"""
const look = () => {{
  const lines = document.querySelectorAll("#vis line").length;
  if (lines < {144 * T * T}) return requestAnimationFrame(look);
  requestAnimationFrame(() => requestAnimationFrame(() => {{
    window.drawn = [performance.now(), performance.now(), lines];
  }}));
}};
requestAnimationFrame(look);
"""


def grid(quick: bool) -> Iterator[Row]:
    """Two rows: bytes, and the time until it is drawn."""
    trace, theirs = pictures()
    figure = ours_json(trace, thumbnail_size(trace.n_heads))
    full = len(ours_json(trace, T).encode())
    sizes = [len(text.encode()) / 1e3 for text in (theirs, figure)]
    note = (
        "Grid: against BertViz's model_view of the same patterns; ours as the page sends it, each "
        "pattern max-pooled to fit the width of the page. With a pixel for every weight, it would "
        f"be {show(full / 1e3, 'kB')}."
    )
    what = f"Grid of 144 heads, T = {T}: bytes"
    row = at_least(what, *sizes, 60, "kB", note, better="smaller")
    goal = f"{row.goal}, at most {LIMIT // 1000} kB"
    yield replace(row, goal=goal, met=row.met and 1e3 * sizes[1] <= LIMIT)
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        write_pages(Path(folder), figure, theirs)
        ours_drawn, ours_cold, theirs_drawn = [], [], []
        for _ in range(1 if quick else 3):
            theirs_drawn.append(drawn(browser, Path(folder) / "theirs.html", WATCH)[0])
            for _ in range(3):
                warm, cold, images = drawn(browser, Path(folder) / "ours.html")
                if images != 1:
                    raise NotMeasured(f"the grid has {images:g} images instead of one.")
                ours_drawn.append(warm)
                ours_cold.append(cold)
    theirs_ms, ours_ms, cold = map(median, (theirs_drawn, ours_drawn, ours_cold))
    note = (
        "Drawn: ours from Plotly.newPlot until the image is decoded and two frames have passed, in "
        "a page with plotly.js loaded; BertViz from the start of its page until all lines exist "
        "and two frames have passed. Ours from the start of a page, with plotly.js to load: "
        f"{show(cold, 'ms')}, {factor(theirs_ms / cold)} faster."
    )
    yield at_least("The same, drawn in Chromium", theirs_ms, ours_ms, 20, "ms", note)


def pictures() -> tuple[Trace, str]:
    """Our trace, and BertViz's HTML for the same text and weights."""
    try:
        from bertviz import model_view
    except ImportError as error:
        raise NotMeasured(f"{error}; requirements-bench.txt says how to install it.") from error
    compute.check_equal()
    run_theirs, run_ours = compute.sides(T)
    trace = run_ours()
    tokens = [html.escape(token) for token in trace.tokens]
    view = model_view(run_theirs()[1:], tokens, display_mode="light", html_action="return")
    return trace, str(view.data)


def ours_json(trace: Trace, size: int) -> str:
    """The figure as it is sent to the browser, with `size` pixels per side of a pattern."""
    figure = head_grid(trace.thumbnails(size), LIGHT)
    return str(figure.update_layout(width=600, height=600).to_json())


def write_pages(folder: Path, figure: str, theirs: str) -> None:
    """Writes both pages, and the libraries that they load."""
    from plotly.offline import get_plotlyjs

    for package, (_, name, address) in LIBRARIES.items():
        if NETWORK + address not in theirs:
            raise NotMeasured(f"this BertViz does not load {address}; install 1.4.1.")
        local = name if address.endswith(".js") else name.removesuffix(".js")
        theirs = theirs.replace(NETWORK + address, local)
        shutil.copy(library(package), folder / name)
    head = '<!doctype html><meta charset="utf-8"><body>'
    (folder / "theirs.html").write_text(head + theirs, encoding="utf-8")
    (folder / "plotly.min.js").write_text(get_plotlyjs(), encoding="utf-8")
    page = OURS.format(figure=figure.replace("</", "<\\/"))
    (folder / "ours.html").write_text(page, encoding="utf-8")


def library(package: str) -> Path:
    """One file of an npm package, downloaded once and kept in runs/bench."""
    member, name, _ = LIBRARIES[package]
    kept = ROOT / "runs" / "bench" / name
    if kept.exists():
        return kept
    kept.parent.mkdir(parents=True, exist_ok=True)
    command = ["npm", "pack", "--silent", package]
    try:
        done = subprocess.run(
            command, cwd=kept.parent, check=True, capture_output=True, text=True, timeout=120
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise NotMeasured(
            f"`{' '.join(command)}` failed ({error}), so BertViz's page lacks its libraries."
        ) from error
    archive = kept.parent / done.stdout.split()[-1]
    with tarfile.open(archive) as packed:
        content = packed.extractfile(f"package/{member}")
        assert content is not None
        kept.write_bytes(content.read())
    archive.unlink()
    return kept


def drawn(browser: "Browser", page_file: Path, script: str = "") -> list[float]:
    """Opens a page in a new context and waits for its result, `window.drawn`."""
    context = browser.new_context(viewport=WINDOW)
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    if script:
        page.add_init_script(script)
    page.goto(page_file.as_uri(), wait_until="commit")
    page.wait_for_function("window.drawn")
    result: list[float] = page.evaluate("window.drawn")
    context.close()
    return result
