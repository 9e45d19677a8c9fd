"""The title line of a page, and the lines over and beside a figure."""

import html
import re

import streamlit as st

from mha_viz.app.messages import escaped
from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.work import head_names
from mha_viz.app.work.models import TITLES
from mha_viz.heads.names import NO_MEASURE, label

_TAG = re.compile('<span class="head-name">.*?</span>|<[^<>]*>')


def title_line(view: View, title: str, question: str = "") -> None:
    """The title line: which model, which size, how many tokens, which head.

    `question` comes before them; it is HTML.
    """
    trace = view.trace
    n = trace.n_tokens
    about(
        title,
        f"{question}{escaped(model_name(view))} · {trace.n_layers} layers × "
        f"{trace.n_heads} heads · "
        f"{n:,} token{'s' * (n != 1)} · {selected_head(view)} {head_badge(view)}",
        more=_evidence(view),
    )


def selected_head(view: View) -> str:
    """The label of the selected head, as HTML; the token strip changes it when a key is pressed."""
    return f'<b class="selected-head">{view.at.label}</b>'


def head_badge(view: View) -> str:
    """The name of the selected head as HTML, empty while it is not known; see `selected_head`."""
    known = head_names.of(view.model)
    return f'<span class="head-name">{label(known[view.at]) if known else ""}</span>'


def _evidence(view: View) -> str | None:
    """What the name of the selected head rests on, for the help of the title line."""
    known = head_names.of(view.model)
    if known is None:
        return None
    found = " ".join(name.evidence for name in known[view.at])
    return f"**{view.at.label}**: {found or NO_MEASURE}"


def about(title: str, text: str, *, more: str | None = None) -> None:
    """A title line with any text; `text` is HTML, `more` is help beside the glossary's."""
    # Streamlit applies its own style to an <h1>.
    heading = f'<span role="heading" aria-level="1">{title}</span>'
    explained.html(f'<div class="lead">{heading}<span>{text}</span></div>', more=more)


def model_name(view: View) -> str:
    """The short name of the model, for sentences."""
    return TITLES.get(view.about.name, view.about.name).split(" · ")[0]


def without_special(view: View) -> str:
    """The end of “mean over queries …”: excludes special tokens, if the text has any."""
    return "" if view.trace.text_queries is None else " that are not special tokens"


def caption(title: str, text: str, more: str = "", *, also: str = "") -> None:
    """One line over a figure: its name and what it shows.

    Stage mode leaves out `more`. All are HTML. `also` has words of the figure to explain as well.
    """
    captions().append((_words(title), _words(text)))
    name = f"<b>{title}</b> " if title else ""
    rest = f'<span class="more">{more}</span>' if more else ""
    explained.html(f'<div class="caption">{name}{text}{rest}</div>', also=also)


def captions() -> list[tuple[str, str]]:
    """The captions of this run as plain text, each with its title."""
    found: list[tuple[str, str]] = st.session_state.setdefault("captions", [])
    return found


def _words(text: str) -> str:
    return html.unescape(_TAG.sub("", text)).strip()


def metrics(*items: str) -> None:
    """Numbers with their names, side by side; each is HTML with the number in bold."""
    cells = "".join(f"<span>{item}</span>" for item in items)
    explained.html(f'<div class="score">{cells}</div>')
