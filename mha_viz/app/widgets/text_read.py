"""How the model reads a typed text: the tokens of the template, and warnings about changes."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from mha_viz.app.messages import notice, plain
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.choices import check_link
from mha_viz.model import Model
from mha_viz.tokens import shorten
from mha_viz.trace import Trace

_SHOWN = 120  # characters of a changed text in the message about it


def template_input(sidebar: DeltaGenerator, model: Model) -> bool:
    """A toggle for the tokens of the tokenizer's template, shown only if it has any."""
    names = ", ".join(plain(token.label) for token in model.template_tokens)
    if not names:
        return False
    with sidebar:
        template = bool(
            explained.toggle(
                "Start of text",
                key="template",
                bind="query-params",
                help="Adds the special tokens that the tokenizer's template puts before and after "
                "a text",
            )
        )
        explained.note(
            f"The tokenizer's template adds {names}"
            + ("." if template else "; this is off, so the model reads only the text.")
        )
    check_link("template", str(template).lower())
    return template


def warn_of_replaced_characters(trace: Trace, text: str) -> None:
    """Warns if a text contains U+FFFD, a browser's replacement for what it cannot send."""
    n = trace.replaced + trace.text.count("\ufffd")
    if n:
        notice(
            f"{text} contains U+FFFD {n} time{'s' * (n > 1)}. It replaces characters that are not "
            "valid Unicode."
        )


def warn_of_changed_text(trace: Trace, text: str) -> None:
    """Shows what the tokenizer read if that is not what was typed. `text` names the text."""
    if not trace.read_as:
        return
    read = shorten(trace.read_as, _SHOWN)
    notice(f"The tokenizer of this model changes {text}. The model reads: “{read}”")
    if read != trace.read_as:
        with st.expander("Everything the model reads"):
            st.code(trace.read_as, language=None, wrap_lines=True)


def warn_of_dropped_tokens(trace: Trace) -> None:
    """Warns if the text is longer than the context of the model."""
    dropped, kept = trace.left_out, trace.n_tokens
    if not dropped:
        return
    first, last = ("first", "last") if trace.cut == "end" else ("last", "first")
    notice(
        f"The text has {kept + dropped:,} tokens, but this model's context holds {kept:,}. Showing "
        f"the {first} {kept:,}; the {last} {dropped:,} are dropped."
    )
