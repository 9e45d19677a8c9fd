"""The texts that the Training page trains on: the bundled one, Tiny Shakespeare, the visitor's."""

import http.client
import time
import urllib.request
from dataclasses import dataclass
from functools import lru_cache

import streamlit as st

from mha_viz.app.messages import notice, problem
from mha_viz.app.widgets import explained
from mha_viz.app.work.progress import ResultSlot, wait_for, was_stopped
from mha_viz.assets import ASSETS
from mha_viz.errors import MhaVizError, SourceError, TextError
from mha_viz.lessons.char_model import MAX_VOCABULARY, MIN_CHARACTERS, vocabulary_of

BUNDLED = ASSETS / "training.txt"
URL = "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt"
N_BYTES = 1_115_394  # of the text there
SILENCE, DEADLINE = 10.0, 60.0  # seconds without a byte, and for the whole of it
SOURCES = ["Generated", "Tiny Shakespeare", "Your file"]


@dataclass(frozen=True, slots=True)
class Text:
    """A text to train on; `name` completes "the text is …"."""

    name: str
    content: str
    n_distinct: int

    def __str__(self) -> str:
        return f"{self.name}, {len(self.content):,} characters, {self.n_distinct} different"


def obtain(source: str) -> Text | None:
    """The text of one of SOURCES; None after the page has said what is missing."""
    try:
        if source == SOURCES[1]:
            return _shakespeare()
        if source == SOURCES[2]:
            return _own()
        return generated()
    except MhaVizError as error:
        problem(str(error))
        return None


@lru_cache(maxsize=1)
def generated() -> Text:
    """The bundled text. Raises SourceError without its file, TextError where it was cut."""
    try:
        return _text("written by the bundled model", BUNDLED.read_text(encoding="utf-8"))
    except OSError as error:
        raise SourceError(
            f"The bundled text {BUNDLED.name} is not in {BUNDLED.parent.name}/. Fetch it again, or "
            "train on a file of your own."
        ) from error


def fetch(url: str = URL, n_bytes: int = N_BYTES) -> str:
    """The text at the address. Raises SourceError where it does not come whole and as expected."""
    host = url.split("/")[2]
    end = time.monotonic() + DEADLINE
    data = b""
    try:
        with urllib.request.urlopen(url, timeout=SILENCE) as answer:
            while len(data) <= n_bytes and (part := answer.read1(1 << 16)):
                data += part
                if time.monotonic() > end:
                    raise TimeoutError(f"not finished within {DEADLINE:.0f} s")
    except (OSError, http.client.HTTPException) as error:
        reason = str(error).removeprefix("<urlopen error ").removesuffix(">")
        raise SourceError(
            f"{host} did not send the text: {reason}. Check the connection and try again, or train "
            "on another text."
        ) from error
    if len(data) != n_bytes:
        many = "more than" if len(data) > n_bytes else f"{len(data):,} bytes instead of"
        raise SourceError(
            f"{host} sent {many} {n_bytes:,} bytes, so this is not the text that was asked for. "
            "Try again, or train on another text."
        )
    return decode(data)[0]


def decode(data: bytes) -> tuple[str, str]:
    """The text of a file, its lines ending in newlines, and the encoding that it was read in.

    Raises TextError for what is no text.
    """
    encodings = ["utf-8-sig", "cp1252"]
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        encodings = ["utf-16"]
    for encoding in encodings:
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        if "\0" not in text:
            return text.replace("\r\n", "\n").replace("\r", "\n"), encoding
    raise TextError("The file holds no plain text. Save the text as UTF-8 and give it again.")


def _text(name: str, content: str) -> Text:
    return Text(name, content, len(vocabulary_of(content)))


_fetched: ResultSlot[Text] = ResultSlot()  # once for all visitors


def _shakespeare() -> Text | None:
    state = st.session_state
    if _fetched.result is None and not state.get("asked_for_shakespeare"):
        _offer()
        return None
    found = wait_for(
        _fetched,
        "Downloading",
        lambda report: _text("Tiny Shakespeare", fetch()),
        lane="shakespeare",
    )
    if found is None and not was_stopped(_fetched):
        state["asked_for_shakespeare"] = False
        _offer()
    return found


def _offer() -> None:
    st.info(
        "Tiny Shakespeare is not here yet: 1.1 MB from raw.githubusercontent.com, kept in memory. "
        "Nothing else in a training uses the network.",
        icon=":material/cloud_download:",
    )
    st.button(
        "Download it", type="primary", key="fetch_shakespeare",
        on_click=lambda: st.session_state.update(asked_for_shakespeare=True),
    )  # fmt: skip


def _own() -> Text | None:
    """The file given last; it stays when the visitor comes back from another page."""
    state = st.session_state
    given = explained.file_uploader(
        f"A plain text of at least {MIN_CHARACTERS:,} characters, at most "
        f"{st.get_option('server.maxUploadSize')} MB and {MAX_VOCABULARY:,} different characters; "
        "it stays on this server, in memory",
        type=["txt"], key="train_file", on_change=_forget_own,
    )  # fmt: skip
    if given is not None and "train_text" not in state:
        content, state["train_encoding"] = decode(given.getvalue())
        state["train_text"] = _text(given.name[:60], content)
    found: Text | None = state.get("train_text")
    if found is not None and state["train_encoding"] == "cp1252":
        notice("The file is not UTF-8; it was read as Windows-1252.")
    return found


def _forget_own() -> None:
    st.session_state.pop("train_text", None)
