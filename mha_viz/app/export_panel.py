"""The export panel: each figure of a page as a picture, a page or data, and all of them at once."""

import datetime
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from urllib.parse import urlencode

import streamlit as st

from mha_viz import export
from mha_viz.app.browser import component_code
from mha_viz.app.view import View
from mha_viz.app.widgets.chart import pictures, recorded_settings, recorded_source

TITLE = "GPT-2 attention"
Facts = dict[str, object]
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


def offer(view: View) -> None:
    """A switch in the sidebar and, when it is on, every figure of this page in every format."""
    with st.sidebar:
        if not st.toggle("Export", key="export", help="Figures and data as files"):
            return
        drawn = pictures()
        if not drawn:
            st.caption("There are no figures on this page at the moment.")
            return
        key = st.selectbox("Figure", list(drawn), key="export_figure")
        picture = drawn[key]
        name = _file_name(f"{picture.name}-{view.at.key}")
        if picture.plotted:
            theme = view.theme
            data = {"key": key, "name": name, "page": theme.page, "rim": theme.control}
            _save(key=f"save {key}", data=data)
        else:
            st.caption("For PNG and SVG, use the buttons below the figure.")
        text, facts = recorded_source() or (view.trace.text, _facts_of_view(view))
        facts = _link(view) | facts | recorded_settings() | _creation()
        _data_buttons(picture, name, facts, text)
        st.download_button(
            "Whole page as one HTML file",
            partial(export.page, TITLE, list(drawn.values()), facts, text),
            f"page-{view.at.key}.html",
            "text/html",
            on_click="ignore",
            key="export_page",
            help="One file that opens offline: text, token ids, model and weights, versions, "
            "settings, all figures, and the link to this view",
        )


def facts_of_model(view: View) -> Facts:
    """The weights in use, and the device that computes with them."""
    about = view.about
    return {
        "Model": f"{about.name} ({about.source}), {about.n_parameters:,} parameters",
        "Weights": f"SHA-256 {about.weights_hash}, stored as {about.stored_dtype}",
        "Device": f"{view.model.device.type}, computed as float32",
    }


def _data_buttons(picture: export.Picture, name: str, facts: Facts, text: str) -> None:
    html = partial(export.page, picture.name, [picture], facts, text)
    files: list[tuple[str, str, str, Callable[[], str | bytes]]] = [
        ("HTML", ".html", "text/html", html),
        ("CSV", ".csv", "text/csv", picture.csv),
        ("JSON", ".json", "application/json", picture.json),
        ("npz", ".npz", "application/octet-stream", picture.npz),
    ]
    with st.container(horizontal=True):
        for label, ending, mime, make in files:
            st.download_button(
                label, make, f"{name}{ending}", mime, on_click="ignore", key=f"as {label}"
            )


def _link(view: View) -> Facts:
    """The address of what is shown; a model or text that is not available is replaced in it."""
    page = (st.context.url or "").split("?")[0]
    query = {name: st.query_params.get_all(name) for name in st.query_params}
    shown = {"model": view.source, "text": view.trace.text}
    query |= {name: [value] for name, value in shown.items() if name in query}
    encoded = urlencode(query, doseq=True)
    return {"Link": f"{page}?{encoded}" if encoded else page}


def _facts_of_view(view: View) -> Facts:
    trace = view.trace
    return facts_of_model(view) | {
        "Head": view.at.key,
        "Colour": f"{view.scale}{', sink dimmed' if view.dim_sink else ''}, {view.theme.name}",
        "Tokens": f"{trace.n_tokens:,}; dropped at the {trace.cut}: {trace.left_out:,}",
        "Token ids": trace.token_ids,
    }


def _creation() -> Facts:
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    return {**export.versions(), "Created": now}


def _file_name(text: str) -> str:
    return re.sub(r"[^\w.-]+", "-", text).strip("-").lower()
