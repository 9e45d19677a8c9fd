"""Models and traces shared by all users: loaded once, limited in number, never changed."""

import gc
import hashlib
from pathlib import Path

import streamlit as st

from mha_viz import checkpoints
from mha_viz.app.messages import plain
from mha_viz.app.work.progress import Reporter, ResultSlots, wait_for
from mha_viz.model import Model
from mha_viz.trace import Array, Cut, Trace

HUB_SIZES = {  # of the weights, as the Hub stores them
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

# A model's key holds a time stamp, so that a folder that was written again is read again.
_models = ResultSlots[Model](3)
_traces = ResultSlots[Trace](8)
_thumbnails = ResultSlots[Array](16)


def bundled(device: str | None = None) -> Model:
    """The bundled model, which loads quickly."""
    return _bundled(device)


def model(source: str, device: str | None = None, *, lane: str = "model") -> Model | None:
    """The model, from memory if it was loaded before; None after the page has said why not.

    `lane` as in `wait_for`.
    """
    if source == "bundled":
        return _bundled(device)

    def work(report: Reporter) -> Model:
        loaded = checkpoints.load(source, device=device, on_progress=report)
        _freeze()
        return loaded

    slot = _models(source, _stamp(source), device)
    return wait_for(slot, f"Loading {plain(TITLES.get(source, source))}", work, lane=lane)


def trace(
    source: str, device: str | None, text: str, cut: Cut, *, lane: str = "text"
) -> tuple[Trace, str] | None:
    """The trace of a text and its key in caches; None after the page has said why not.

    `lane` as in `wait_for`.
    """
    where = f"{source}\n{_stamp(source)}\n{device}\n{cut}\n"
    trace_key = hashlib.sha256(f"{where}{text}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
    reader = model(source, device, lane=f"model of {lane}")
    if reader is None:
        return None
    L = reader.config.n_layers

    def work(report: Reporter) -> Trace:
        return reader.trace(text, cut=cut, on_layer=lambda done: report(done / L))

    found = wait_for(_traces(trace_key), "Running the model", work, lane=lane)
    return None if found is None else (found, trace_key)


def thumbnails(trace_key: str, size: int, trace: Trace) -> Array | None:
    """All patterns of the trace with that key, pooled to at most `size` cells per side.

    None after the page has said that the work was stopped.
    """

    def work(report: Reporter) -> Array:
        return trace.thumbnails(size, on_layer=lambda done: report(done / trace.n_layers))

    return wait_for(_thumbnails(trace_key, size), "Drawing every head", work, lane="thumbnails")


@st.cache_resource(max_entries=16, show_spinner=False)
def pattern(trace_key: str, layer: int, head: int, _trace: Trace) -> Array:
    """One pattern of the trace with that key, `[T, T]`."""
    found = _trace.pattern(layer, head)
    found.setflags(write=False)
    return found


def warm_up() -> None:
    """Loads the bundled model before the first user comes."""
    _bundled(None)


@st.cache_resource(max_entries=3, show_spinner=False)
def _bundled(device: str | None) -> Model:
    loaded = checkpoints.load("bundled", device=device)
    _freeze()
    return loaded


def _freeze() -> None:
    gc.collect()
    gc.freeze()  # or each collection walks through all of torch and stalls every user


def _stamp(source: str) -> float:
    if not checkpoints.is_local(source):
        return 0.0
    place = Path(source).expanduser()
    files = [place, place / "config.json", place / "model.safetensors"]
    return max((f.stat().st_mtime for f in files if f.exists()), default=0.0)
