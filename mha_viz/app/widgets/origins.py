"""The origin of the numbers on a page, which every file exported from it states."""

from urllib.parse import urlencode

import streamlit as st

from mha_viz.app.view import View
from mha_viz.app.widgets.chart import recorded_settings, recorded_source
from mha_viz.export import Origin, model_facts, origin


def origin_of_page() -> dict[str, object]:
    """The origin of what is on the page so far, with the settings that the page recorded."""
    view: View = st.session_state["view"]
    if recorded := recorded_source():
        text, facts = recorded
        return origin(None, text, facts | recorded_settings(), link=_link(view))
    return origin_of_view(view, recorded_settings())


def origin_of_view(view: View, settings: Origin | None = None) -> dict[str, object]:
    """The origin of the model and the text in the sidebar."""
    trace = view.trace
    facts = {
        "Device": _device(view),
        "Head": view.at.key,
        "Colour": f"{view.scale}{', sink dimmed' if view.dim_sink else ''}, {view.theme.name}",
        "Tokens": f"{trace.n_tokens:,}; dropped at the {trace.cut}: {trace.left_out:,}",
        "Token ids": trace.token_ids,
        **({"Read as": trace.read_as} if trace.read_as else {}),
        **({"Template tokens before, after": trace.template} if any(trace.template) else {}),
    }
    return origin(view.about, trace.text, {**facts, **(settings or {})}, link=_link(view))


def text_of_page() -> str:
    """The text that the figures show: that of the sidebar, or what the page recorded."""
    view: View = st.session_state["view"]
    recorded = recorded_source()
    return recorded[0] if recorded else view.trace.text


def facts_of_model(view: View) -> dict[str, object]:
    """The weights in use, and the device that computes with them."""
    return {**model_facts(view.about), "Device": _device(view)}


def _device(view: View) -> str:
    return f"{view.model.device.type}, computed as float32"


def _link(view: View) -> str:
    """The link to this view, with the model and the text that are in fact shown."""
    page = (st.context.url or "").split("?")[0]
    query = {name: st.query_params.get_all(name) for name in st.query_params}
    shown = {"model": view.source, "text": view.trace.text}
    query |= {name: [value] for name, value in shown.items() if name in query}
    encoded = urlencode(query, doseq=True)
    return f"{page}?{encoded}" if encoded else page
