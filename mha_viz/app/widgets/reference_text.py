"""The text that losses are measured on besides the visitor's own: the project's, or a file."""

import hashlib
from dataclasses import dataclass, field

import streamlit as st

from mha_viz.analysis.reference_texts import evaluation_texts, selection_texts, split_text
from mha_viz.app.messages import plain, problem
from mha_viz.app.widgets.chart import record_settings
from mha_viz.errors import TextError

LARGEST = 200_000  # characters of a file


@dataclass(frozen=True, slots=True)
class Reference:
    """Texts that choose and texts that measure, and what they go by on the page and in caches."""

    name: str
    selection: tuple[str, ...] = field(repr=False)
    evaluation: tuple[str, ...] = field(repr=False)

    @property
    def key(self) -> str:
        """What tells it from others."""
        whole = "\n\n".join((*self.selection, "", *self.evaluation))
        return hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def reference() -> Reference:
    """The reference text; a file of the visitor's takes its place while it is there.

    A file that cannot be used is named on the page, and the project's own text stays.
    """
    with st.expander("Reference text"):
        st.caption(
            "Prose written for this project: 24 pieces, of which every other one chooses and the "
            "rest measure. A file of your own takes its place: paragraphs with blank lines between."
        )
        file = st.file_uploader(
            "A text file", type=["txt", "md"], key="reference", label_visibility="collapsed",
            max_upload_size=1, on_change=_forget_file,
        )  # fmt: skip
        state = st.session_state
        if file is not None:
            state["reference_file"] = (file.name, file.getvalue())  # it stays on other pages
        given: tuple[str, bytes] | None = state.get("reference_file")
        if given is not None:
            st.caption(f"In use: {plain(given[0])}")
            if file is None and st.button("Back to the project's own text"):
                del state["reference_file"]
                given = None
    found = Reference("reference text", selection_texts(), evaluation_texts())
    if given is not None:
        try:
            found = _of_file(*given)
        except TextError as error:
            problem(f"{given[0]}: {error} The project's own text is used.")
    record_settings(Reference_text=f"{found.name}, SHA-256 {found.key}…")
    return found


def _forget_file() -> None:
    st.session_state.pop("reference_file", None)


def _of_file(name: str, content: bytes) -> Reference:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TextError("This is not text in UTF-8.") from error
    if len(text) > LARGEST:
        raise TextError(f"It has {len(text):,} characters; at most {LARGEST:,} are read.")
    return Reference(name[:40], *split_text(text))
