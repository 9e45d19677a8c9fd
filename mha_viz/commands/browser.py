"""SVG and PNG of a figure, drawn by an installed Chromium or Chrome without a window."""

import base64
import html
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import unquote_to_bytes

import plotly.graph_objects as go
from PIL import Image, PngImagePlugin

from mha_viz.errors import OutputError
from mha_viz.export import Origin

VARIABLE = "MHA_VIZ_BROWSER"
NAMES = (
    "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome",
    "microsoft-edge", "msedge", "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)  # fmt: skip
OPTIONS = (
    "--headless", "--disable-gpu", "--no-first-run", "--disable-sync", "--disable-extensions",
    "--disable-background-networking", "--disable-component-update", "--virtual-time-budget=60000",
    "--dump-dom",
)  # fmt: skip
PATIENCE = 180  # seconds
PIXELS = 2  # of a PNG, for each pixel of the figure
TO_IMAGE = """
(async () => {
  const plot = document.getElementById("{plot_id}"), { width, height } = plot._fullLayout;
  const address = await Plotly.toImage(plot, { format: "svg", width, height });
  const svg = decodeURIComponent(address.slice(address.indexOf(",") + 1));
  const drawing = new DOMParser().parseFromString(svg, "image/svg+xml");
  for (const cells of drawing.querySelectorAll("image")) cells.style.imageRendering = "pixelated";
  const sharp = new XMLSerializer().serializeToString(drawing);
  let drawn = `data:image/svg+xml,${encodeURIComponent(sharp)}`;
  if ("FORMAT" === "png") {
    const image = new Image();
    image.src = drawn;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [width * SCALE, height * SCALE];
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    drawn = canvas.toDataURL("image/png");
  }
  const result = document.createElement("pre");
  result.id = "drawn";
  result.textContent = drawn;
  document.body.replaceChildren(result);
})();
"""
_INSTEAD = f"Set {VARIABLE} to another browser, or write .html."
_DRAWN = re.compile(r'<pre id="drawn">data:[^,<]*?(;base64)?,([^<]*)</pre>')


def find() -> str:
    """The browser. Raises OutputError with what to do if there is none."""
    chosen = os.environ.get(VARIABLE)
    names = (chosen,) if chosen else NAMES
    found = next((path for name in names if (path := shutil.which(name))), None)
    if found is None:
        where = f"{VARIABLE} names {chosen!r}, which" if chosen else "Chromium or Chrome"
        raise OutputError(
            f"SVG and PNG are drawn by a browser, and {where} is not on this machine. Install "
            f"Chromium, set {VARIABLE} to the path of a browser, or write .html."
        )
    return found


def image(figure: go.Figure, ending: str) -> bytes:
    """The figure as ".svg" or ".png". Raises OutputError if the browser fails."""
    code = TO_IMAGE.replace("FORMAT", ending[1:]).replace("SCALE", str(PIXELS))
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "figure.html"
        page.write_text(figure.to_html(include_plotlyjs=True, post_script=code), encoding="utf-8")
        command = [find(), *OPTIONS, f"--user-data-dir={folder}/profile", *_sandbox()]
        try:
            done = subprocess.run(
                [*command, page.as_uri()], capture_output=True, timeout=PATIENCE, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise OutputError(
                f"{command[0]} could not draw the figure: {error}. {_INSTEAD}"
            ) from error
    drawn = _DRAWN.search(done.stdout.decode("utf-8", "replace"))
    if drawn is None:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        reason = f" ({said[-1][:200]})" if said else ""
        raise OutputError(f"{command[0]} could not draw the figure{reason}. {_INSTEAD}")
    encoded = html.unescape(drawn[2])
    return base64.b64decode(encoded) if drawn[1] else unquote_to_bytes(encoded)


def with_origin(drawn: bytes, ending: str, origin: Origin) -> bytes:
    """The picture with its origin, where the app also puts it: SVG metadata, or text of a PNG."""
    facts = json.dumps(dict(origin))
    if ending == ".svg":
        head, end, rest = drawn.partition(b">")
        return head + end + f"<metadata>{html.escape(facts)}</metadata>".encode() + rest
    info, written = PngImagePlugin.PngInfo(), io.BytesIO()
    info.add_text("Provenance", facts)
    with Image.open(io.BytesIO(drawn)) as picture:
        picture.save(written, "png", pnginfo=info)
    return written.getvalue()


def _sandbox() -> tuple[str, ...]:
    """Chromium does not start as root with its sandbox; it opens only our own page."""
    is_root = sys.platform != "win32" and os.geteuid() == 0
    return ("--no-sandbox",) if is_root else ()
