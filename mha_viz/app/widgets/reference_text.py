"""The text that losses are measured on besides the user's own: the project's, or an upload."""

import hashlib
from dataclasses import dataclass, field

import streamlit as st

from mha_viz.analysis.reference_texts import evaluation_texts, selection_texts, split_text
from mha_viz.app.messages import plain, problem
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.chart import record_settings
from mha_viz.errors import TextError

LARGEST = 200_000  # characters of a file


@dataclass(frozen=True, slots=True)
class Reference:
    """Texts for selecting heads, and held-out texts for evaluation; `name` is for display."""

    name: str
    selection: tuple[str, ...] = field(repr=False)
    evaluation: tuple[str, ...] = field(repr=False)
    uploaded: bool = False

    @property
    def cannot(self) -> str:
        """Why no script can read these texts again; "" for the project's own."""
        return f"It uses an uploaded file, {self.name}." if self.uploaded else ""

    @property
    def key(self) -> str:
        """A hash of the texts, for caches."""
        whole = "\n\n".join((*self.selection, "", *self.evaluation))
        return hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def reference() -> Reference:
    """The reference text: the uploaded file while there is one, else the project's own text.

    If the file cannot be used, the page says why and uses the project's text.
    """
    with st.expander("Reference text"):
        explained.note(
            "24 passages written for this project: half are used to choose heads, the other half "
            "to measure the effect. You can upload your own text instead, with blank lines between "
            "paragraphs."
        )
        upload = _uploaded()
    text = Reference("reference text", selection_texts(), evaluation_texts())
    if upload is not None:
        try:
            text = _of_file(*upload)
        except TextError as error:
            problem(f"{upload[0]}: {error} The project's text is used instead.")
    record_settings(Reference_text=f"{text.name}, SHA-256 {text.key}…")
    return text


def _uploaded() -> tuple[str, bytes] | None:
    """Name and content of the uploaded file, which is kept while the user is on other pages."""
    state = st.session_state
    file = st.file_uploader(
        "A text file",
        type=["txt", "md"],
        key="reference",
        label_visibility="collapsed",
        max_upload_size=1,
        on_change=_forget_file,
    )
    if file is not None:
        state["reference_file"] = (file.name, file.getvalue())
    kept: tuple[str, bytes] | None = state.get("reference_file")
    if kept is not None:
        st.caption(f"In use: {plain(kept[0])}")
        if file is None and st.button("Use the project's text"):
            del state["reference_file"]
            return None
    return kept


def _forget_file() -> None:
    st.session_state.pop("reference_file", None)


def _of_file(name: str, content: bytes) -> Reference:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TextError("This is not UTF-8 text.") from error
    if len(text) > LARGEST:
        raise TextError(f"It has {len(text):,} characters; the limit is {LARGEST:,}.")
    return Reference(name[:40], *split_text(text), uploaded=True)
