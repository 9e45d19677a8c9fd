"""Take it away: each figure of the page as a picture, a page or numbers; and all of it at once."""

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
    """A switch in the sidebar, and under it every figure of this page in every form."""
    with st.sidebar:
        if not st.toggle("Take it away", key="export", help="Figures and numbers as files"):
            return
        drawn = pictures()
        if not drawn:
            st.caption("There is no figure on this page now.")
            return
        key = st.selectbox("Figure", list(drawn), key="export_figure")
        picture = drawn[key]
        name = _file_name(f"{picture.name}-{view.at.key}")
        if picture.plotted:
            _save(
                key=f"save {key}",
                data={"key": key, "name": name, "page": view.theme.page, "rim": view.theme.control},
            )
        else:
            st.caption("PNG and SVG: the buttons under the drawing.")
        text, facts = recorded_source() or (view.trace.text, _of_view(view))
        facts = _link(view) | facts | recorded_settings() | _made()
        forms: dict[str, tuple[str, str, Callable[[], str | bytes]]] = {
            "HTML": (".html", "text/html",
                     partial(export.page, picture.name, [picture], facts, text)),
            "CSV": (".csv", "text/csv", picture.csv),
            "JSON": (".json", "application/json", picture.json),
            "npz": (".npz", "application/octet-stream", picture.npz),
        }  # fmt: skip
        with st.container(horizontal=True):
            for form, (ending, kind, make) in forms.items():
                st.download_button(
                    form, make, f"{name}{ending}", kind, on_click="ignore", key=f"as {form}"
                )
        st.download_button(
            "Capsule: all of this page",
            partial(export.page, TITLE, list(drawn.values()), facts, text),
            f"capsule-{view.at.key}.html", "text/html", on_click="ignore", key="capsule",
            help="One file that opens offline: text, token ids, model and weights, versions, "
            "settings, all figures, and the link to this view",
        )  # fmt: skip


def _link(view: View) -> dict[str, object]:
    """The address of what is drawn, which is not what was asked for where that could not be had."""
    page = (st.context.url or "").split("?")[0]
    asked = {name: st.query_params.get_all(name) for name in st.query_params}
    shown = {"model": view.source, "text": view.trace.text}
    asked |= {name: [value] for name, value in shown.items() if name in asked}
    query = urlencode(asked, doseq=True)
    return {"Link": f"{page}?{query}" if query else page}


def of_model(view: View) -> dict[str, object]:
    """Which weights, and where they computed."""
    about = view.about
    return {
        "Model": f"{about.name} ({about.source}), {about.n_parameters:,} parameters",
        "Weights": f"SHA-256 {about.weights_hash}, stored as {about.stored_dtype}",
        "Device": f"{view.model.device.type}, computed as float32",
    }


def _of_view(view: View) -> dict[str, object]:
    trace = view.trace
    return of_model(view) | {
        "Head": view.at.key,
        "Colour": f"{view.scale}{', sink dimmed' if view.dim_sink else ''}, {view.theme.name}",
        "Tokens": f"{trace.n_tokens:,}; left out at the {trace.cut}: {trace.left_out:,}",
        "Token ids": trace.token_ids,
    }


def _made() -> dict[str, object]:
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    return {**export.versions(), "Made": now}


def _file_name(text: str) -> str:
    return re.sub(r"[^\w.-]+", "-", text).strip("-").lower()
