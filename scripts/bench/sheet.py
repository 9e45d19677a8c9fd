"""A page in Chromium that draws views one at a time, and times each.

plotly.js and the components are already loaded, as on a page of the app that has drawn before.
The clock runs from the JSON until the images are decoded and two frames have passed.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bench.common import WINDOW
from bench.sent import Sent

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from bench.components import Part

PATIENCE = 60  # seconds
PAGE = """<!doctype html><meta charset="utf-8"><body style="margin: 0">
<script src="plotly.min.js"></script>
<script>
const parts = {};
const frame = () => new Promise(requestAnimationFrame);

function place(width) {
  const made = document.body.appendChild(document.createElement("div"));
  made.style.width = `${width}px`;
  return made;
}

async function painted(sources) {
  for (const src of sources) await Object.assign(new Image(), { src }).decode();
  await frame();
  await frame();
}

async function load(name, part) {
  const file = URL.createObjectURL(new Blob([part.js], { type: "text/javascript" }));
  parts[name] = { ...part, start: (await import(file)).default };
}

async function drawFigure({ content, width, height }) {
  const plot = place(width);
  const start = performance.now();
  const { data, layout } = JSON.parse(content);
  await Plotly.newPlot(plot, data, { ...layout, width, height }, { displayModeBar: false });
  await painted([...plot.querySelectorAll("image")].map((image) => image.href.baseVal));
  const taken = performance.now() - start;
  Plotly.purge(plot);
  plot.remove();
  return taken;
}

async function drawPart({ content, width, part }) {
  const host = place(width), { html, css, start: draw } = parts[part];
  const parentElement = host.attachShadow({ mode: "open" });
  const start = performance.now();
  const data = JSON.parse(content);
  parentElement.innerHTML = `<style>${css}</style>${html}`;
  const stop = draw({ data, parentElement, setStateValue() {} });
  await painted(data.image ? [data.image] : []);
  const taken = performance.now() - start;
  stop();
  host.remove();
  return taken;
}

const draw = (sent) => (sent.part ? drawPart : drawFigure)(sent);
</script>"""


class Sheet:
    """The page, in a new context."""

    def __init__(self, browser: "Browser", folder: Path, parts: Mapping[str, "Part"]) -> None:
        from plotly.offline import get_plotlyjs

        (folder / "plotly.min.js").write_text(get_plotlyjs(), encoding="utf-8")
        file = folder / "sheet.html"
        file.write_text(PAGE, encoding="utf-8")
        self.page: Page = browser.new_context(viewport=WINDOW).new_page()
        self.page.set_default_timeout(1e3 * PATIENCE)
        self.page.goto(file.as_uri())
        for name, part in parts.items():
            sides = {"html": part.html, "css": part.css, "js": part.js}
            self.page.evaluate("([name, part]) => load(name, part)", [name, sides])

    def drawn(self, sent: Sent, repeats: int) -> list[float]:
        """Milliseconds of each drawing, after a first one that does not count."""
        keys = ("content", "width", "height", "part")
        self.page.evaluate(
            "sent => { window.sent = sent; }", {key: getattr(sent, key) for key in keys}
        )
        return [self.page.evaluate("draw(window.sent)") for _ in range(repeats + 1)][1:]
