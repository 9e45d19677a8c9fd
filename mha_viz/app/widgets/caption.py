"""The title line of a page, and the line over a figure."""

import streamlit as st

from mha_viz.app.messages import escaped
from mha_viz.app.view import View
from mha_viz.app.work.models import TITLES


def title_line(view: View, title: str) -> None:
    """The title line: which model, which size, how many tokens, which head."""
    trace = view.trace
    n = trace.n_tokens
    st.html(
        f'<div class="lead"><h1>{title}</h1><span>{escaped(model_name(view))} · '
        f"{trace.n_layers} layers × {trace.n_heads} heads · {n:,} token{'s' * (n != 1)} · "
        f"<b>{view.at.label}</b> chosen</span></div>"
    )


def model_name(view: View) -> str:
    """What the model is called in a sentence."""
    return TITLES.get(view.about.name, view.about.name).split(" · ")[0]


def caption(title: str, words: str, more: str = "") -> None:
    """One line over a figure: its name, what is drawn, and on a screen a second fact."""
    rest = f'<span class="more">{more}</span>' if more else ""
    st.html(f'<div class="caption"><b>{title}</b> {words}{rest}</div>')
