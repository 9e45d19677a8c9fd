"""Models and traces that all visitors share: loaded once, kept within bounds, never changed."""

import gc
import hashlib
import threading
from pathlib import Path

import streamlit as st

from mha_viz import checkpoints
from mha_viz.model import Model
from mha_viz.trace import Array, Cut, Trace

HUB_SIZES = {  # of the weights, as the hub stores them
    "distilgpt2": "82 M parameters, 353 MB",
    "gpt2": "124 M parameters, 548 MB",
    "gpt2-medium": "355 M parameters, 1.5 GB",
    "gpt2-large": "774 M parameters, 3.2 GB",
    "gpt2-xl": "1.6 B parameters, 6.4 GB",
}
TITLES = {
    "bundled": "Bundled model · 4 × 6",
    "distilgpt2": "DistilGPT-2 · 6 × 12",
    "gpt2": "GPT-2 small · 12 × 12",
    "gpt2-medium": "GPT-2 medium · 24 × 16",
    "gpt2-large": "GPT-2 large · 36 × 20",
    "gpt2-xl": "GPT-2 XL · 48 × 25",
}
_forward = threading.Semaphore(2)  # more at once would only take turns on the same cores


def model(source: str, device: str | None = None) -> Model:
    """The model, from memory if it was loaded before. Raises MhaVizError as `load` does."""
    return _model(source, _stamp(source), device)


@st.cache_resource(max_entries=3, show_spinner=False)
def _model(source: str, stamp: float, device: str | None) -> Model:
    del stamp  # only tells apart a folder that was written anew
    loaded = checkpoints.load(source, device=device)
    gc.collect()
    gc.freeze()  # else each collection walks all of torch, and stalls every visitor
    return loaded


def trace(source: str, device: str | None, text: str, cut: Cut) -> tuple[Trace, str]:
    """The trace of a text and the name it goes by in caches. Raises MhaVizError."""
    found = _trace(source, _stamp(source), device, text, cut)
    where = f"{source}\n{_stamp(source)}\n{device}\n{cut}\n"
    key = f"{where}{text}".encode("utf-8", "surrogatepass")
    return found, hashlib.sha256(key).hexdigest()[:16]


@st.cache_resource(max_entries=8, show_spinner=False)
def _trace(source: str, stamp: float, device: str | None, text: str, cut: Cut) -> Trace:
    with _forward:
        return _model(source, stamp, device).trace(text, cut=cut)


@st.cache_resource(max_entries=16, show_spinner=False)
def thumbnails(words: str, size: int, _trace: Trace) -> Array:
    """All heads of the trace that `words` names, pooled to at most `size` a side."""
    if _trace.n_tokens <= 4 * size:
        return _trace.thumbnails(size)
    bar = st.progress(0.0, text="Drawing every head…")

    def show(done: int) -> None:
        bar.progress(done / _trace.n_layers, text="Drawing every head…")

    found = _trace.thumbnails(size, on_layer=show)
    bar.empty()
    return found


@st.cache_resource(max_entries=16, show_spinner=False)
def pattern(words: str, layer: int, head: int, _trace: Trace) -> Array:
    """One pattern of the trace that `words` names."""
    found = _trace.pattern(layer, head)
    found.setflags(write=False)
    return found


def warm_up() -> None:
    """Loads the bundled model before the first visitor comes."""
    model("bundled")


def _stamp(source: str) -> float:
    if not checkpoints.is_local(source):
        return 0.0
    place = Path(source).expanduser()
    files = [place, place / "config.json", place / "model.safetensors"]
    return max((f.stat().st_mtime for f in files if f.exists()), default=0.0)
