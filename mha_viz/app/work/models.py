"""Models and traces shared by all users: loaded once, limited in number, never changed."""

import gc
import hashlib

import streamlit as st

from mha_viz import checkpoints
from mha_viz.analysis import logit_attribution
from mha_viz.analysis.logit_attribution import Push
from mha_viz.app.messages import notice, plain
from mha_viz.app.work.progress import Reporter, ResultSlots, wait_for
from mha_viz.checkpoints.folder import Fingerprint, expanded, fingerprint
from mha_viz.errors import MhaVizError
from mha_viz.head import Head
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

# A model's key includes when its files were written: a new session sees a changed folder as it is
# now, and an old one keeps what it has shown.
_models = ResultSlots[Model](3)
_traces = ResultSlots[Trace](8)
_thumbnails = ResultSlots[Array](16)
_pushes = ResultSlots[Push](256)


def bundled(device: str | None = None) -> Model:
    """The bundled model, which loads quickly."""
    return _bundled(device)


def model(source: str, device: str | None = None, *, lane: str = "model") -> Model | None:
    """The model, from memory if it was loaded before, or None; the page then says why.

    `lane` as in `wait_for`.
    """
    if source == "bundled":
        return _bundled(device)

    def work(report: Reporter) -> Model:
        loaded = checkpoints.load(source, device=device, on_progress=report)
        _freeze()
        return loaded

    slot = _models(source, _stamp(source), device)
    if slot.result is None and _stamp_now(source) != _stamp(source):
        # The version that this session saw is no longer in memory, or could not be loaded.
        notice(f"The files of {source} have changed. Showing the new version.")
        _stamps()[source] = _stamp_now(source)
        slot = _models(source, _stamp(source), device)
    return wait_for(slot, f"Loading {plain(TITLES.get(source, source))}", work, lane=lane)


def trace(
    source: str,
    device: str | None,
    text: str,
    cut: Cut,
    *,
    template: bool = False,
    lane: str = "text",
) -> tuple[Trace, str] | None:
    """The trace of a text and its key in caches, or None; the page then says why.

    `template` adds what the tokenizer's template adds. `lane` as in `wait_for`.
    """
    reader = model(source, device, lane=f"model of {lane}")
    if reader is None:
        return None
    reader = reader.with_template(template)
    where = f"{source}\n{_stamp(source)}\n{device}\n{cut}\n{template}\n"
    trace_key = hashlib.sha256(f"{where}{text}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
    L = reader.config.n_layers

    def work(report: Reporter) -> Trace:
        return reader.trace(text, cut=cut, on_layer=lambda done: report(done / L))

    found = wait_for(_traces(trace_key), "Running the model", work, lane=lane)
    return None if found is None else (found, trace_key)


def thumbnails(trace_key: str, size: int, trace: Trace, *, relative: bool = False) -> Array | None:
    """All patterns of the trace with that key, pooled to at most `size` cells per side.

    `relative` is that of `Trace.thumbnails`. None if the work was stopped; the page then says so.
    """

    def work(report: Reporter) -> Array:
        def on_layer(done: int) -> None:
            report(done / trace.n_layers)

        return trace.thumbnails(size, relative=relative, on_layer=on_layer)

    return wait_for(
        _thumbnails(trace_key, size, relative), "Drawing every head", work, lane="thumbnails"
    )


def push(trace_key: str, position: int, model: Model, trace: Trace) -> Push | None:
    """What the heads write towards the next token at a position of the trace with that key.

    None if the work was stopped; the page then says so.
    """

    def work(report: Reporter) -> Push:
        return logit_attribution.push(model, trace, position=position, on_progress=report)

    return wait_for(_pushes(trace_key, position), "Reading the prediction", work, lane="push")


@st.cache_resource(max_entries=32, show_spinner=False)
def telling_head(trace_key: str, _model: Model, _trace: Trace) -> Head:
    """The head that writes most towards the next token of the trace with that key."""
    return logit_attribution.telling_head(_model, _trace)


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


def _stamp(source: str) -> Fingerprint:
    """The state of a folder's files when this session first used it."""
    stamps = _stamps()
    if source not in stamps:
        stamps[source] = _stamp_now(source)
    return stamps[source]


def _stamp_now(source: str) -> Fingerprint:
    if not checkpoints.is_local(source):
        return ()
    try:
        return fingerprint(expanded(source))
    except MhaVizError:  # loading reports it
        return ()


def _stamps() -> dict[str, Fingerprint]:
    found: dict[str, Fingerprint] = st.session_state.setdefault("stamps", {})
    return found
