"""The export panel: each figure as an image, data or a script, and the whole page as one file."""

import json
import re
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, cast

import streamlit as st

from mha_viz import export
from mha_viz.app.browser import component_code
from mha_viz.app.messages import plain
from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.chart import pictures
from mha_viz.app.widgets.origins import origin_of_page, origin_of_view, text_of_page
from mha_viz.export.trace_file import COMPUTE_PATTERNS
from mha_viz.figures.text import format_bytes

LARGEST_DOWNLOAD = 2**30  # bytes, which the server holds until the browser has them
LARGEST_DOWNLOAD_OF_MANY = 2**27  # if others can reach the server too
PATTERNS: dict[str, Any] = {"none": None, "float16": "float16", "float32": "float32"}
_HERE = Path(__file__).parent
_save = st.components.v2.component(
    "mha_viz_save",
    html=(
        '<div class="save">\n<button data-format="png">PNG</button>'
        '<button data-format="svg">SVG</button><span role="status"></span></div>'
    ),
    css=(_HERE / "save.css").read_text(encoding="utf-8"),
    js=component_code(_HERE / "save.js"),
)


def offer(view: View, title: str, *, alone: bool) -> None:
    """A switch in the sidebar and, when it is on, every figure of this page in every format.

    `title` is that of the page; `alone` says that no other machine can reach the server.
    """
    with st.sidebar:
        if not st.toggle("Export", key="export", help="Figures and data as files"):
            return
        if drawn := pictures():
            _figure_files(view, title, drawn)
        else:
            st.caption("There are no figures on this page at the moment.")
        _trace_file(view, LARGEST_DOWNLOAD if alone else LARGEST_DOWNLOAD_OF_MANY)


def _figure_files(view: View, title: str, drawn: dict[str, export.Picture]) -> None:
    """One figure in every format, and the page as one file."""
    origin, text = origin_of_page(), text_of_page()
    key = st.selectbox("Figure", list(drawn), key="export_figure", format_func=_titles(drawn))
    picture = drawn[key]
    name = _file_name(picture.title, view.at.key)
    if picture.plotted:
        theme = view.theme
        said = {"page": theme.page, "rim": theme.control, "origin": json.dumps(origin)}
        _save(key=f"save {key}", data={"key": key, "name": name, **said})
    else:
        st.caption("For PNG and SVG, use the buttons below the figure.")
    page = partial(export.page, theme=view.theme, origin=origin, text=text)
    _buttons(picture, name, origin, partial(page, picture.title, [picture]))
    if picture.recipe.cannot:
        st.caption(f"There is no Python script for this figure. {plain(picture.recipe.cannot)}")
    tokens = view.trace.tokens if text == view.trace.text else ()
    st.download_button(
        "Whole page as one HTML file",
        partial(page, title, list(drawn.values()), tokens=tokens),
        f"{_file_name(title, view.at.key)}.html",
        "text/html",
        on_click="ignore",
        key="export_page",
        help="One file that opens offline, with all figures, the text, its token ids, the model's "
        "name and the hash of its weights, versions, settings, and a link to this view",
    )


def _buttons(
    picture: export.Picture,
    name: str,
    origin: dict[str, object],
    html: Callable[[], str],
) -> None:
    files: list[tuple[str, str, str, Callable[[], str | bytes]]] = [
        ("HTML", ".html", "text/html", html),
        ("CSV", ".csv", "text/csv", partial(picture.csv, origin)),
        ("JSON", ".json", "application/json", partial(picture.json, origin)),
        ("npz", ".npz", "application/octet-stream", partial(picture.npz, origin)),
        ("Python", ".py", "text/x-python", partial(picture.script, origin)),
    ]
    with st.container(horizontal=True):
        for label, ending, mime, make in files:
            if label == "Python" and picture.recipe.cannot:
                continue
            st.download_button(
                label, make, f"{name}{ending}", mime, on_click="ignore", key=f"as {label}"
            )


def _trace_file(view: View, largest: int) -> None:
    """The whole trace as one npz file, and how to compute the patterns from it."""
    with st.expander("Whole trace"):
        explained.note(
            "One npz file with q, k and v of every head, the logits at the last position, the "
            "scales, the tokens and their ids."
        )
        kinds = {
            f"{kind} ({format_bytes(export.trace_size(view.trace, kind_of))})": kind_of
            for kind, kind_of in PATTERNS.items()
        }
        chosen = kinds[st.selectbox("Patterns of all heads", list(kinds), key="export_patterns")]
        name = _file_name("trace", view.about.name.rpartition("/")[2]) + ".npz"
        size = export.trace_size(view.trace, chosen)
        if size > largest:
            explained.note(
                f"This file would be {format_bytes(size)}, but downloads are limited to "
                f"{format_bytes(largest)}. Write it with this script instead."
            )
            st.code(_write_it(view, name, chosen), language="python", wrap_lines=True)
        else:
            st.download_button(
                "Download npz",
                partial(_written, view, chosen, origin_of_view(view)),
                name,
                "application/octet-stream",
                on_click="ignore",
                key="export_trace",
            )
        explained.note(
            "To compute a pattern, apply the softmax to the scaled dot products of q and k, each "
            "row over the keys up to its query."
        )
        st.code(COMPUTE_PATTERNS.format(name=name), language="python", wrap_lines=True)


def _written(view: View, patterns: Any, origin: export.Origin) -> BinaryIO:
    """The npz file, on disk, so that it is in memory only while the server sends it."""
    # Without a buffer: Streamlit accepts no buffered file that is open for reading and writing.
    file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
    export.write_trace(view.trace, file, patterns=patterns, origin=origin)
    file.seek(0)
    return cast(BinaryIO, file)


def _write_it(view: View, name: str, patterns: Any) -> str:
    template = ".with_template()" if view.model.template else ""
    return (
        "from mha_viz.checkpoints import load\nfrom mha_viz.export import write_trace\n\n"
        f"trace = load({view.source!r}){template}.trace(text)  # your text\n"
        f'with open("{name}", "wb") as file:\n'
        f"    write_trace(trace, file, patterns={patterns!r})\n"
    )


def _titles(drawn: dict[str, export.Picture]) -> Callable[[str], str]:
    return lambda key: drawn[key].title


def _file_name(*parts: str) -> str:
    return "-".join(re.sub(r"[^\w.]+", "-", part).strip("-").lower() for part in parts)
