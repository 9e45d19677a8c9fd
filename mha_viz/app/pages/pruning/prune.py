"""The Prune part: a model without the ablated heads, what it saves, and ways to keep it."""

import io
import shutil
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import streamlit as st
import torch

from mha_viz import checkpoints, pruning
from mha_viz.app.inputs import serves_this_machine_only
from mha_viz.app.messages import problem
from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.download_buttons import download_table
from mha_viz.app.widgets.tables import table
from mha_viz.app.work.progress import Halt, Reporter, ResultSlot, ResultSlots, wait_for, was_stopped
from mha_viz.errors import MhaVizError
from mha_viz.head import Head
from mha_viz.model import Model

LARGEST_ZIP = 150e6  # bytes of weights
REPEATS = 7
Writer = Callable[[Path], None]  # writes a model to a folder


@dataclass(frozen=True, slots=True)
class Measurement:
    """Seconds per forward pass of the full and of the pruned model, and how far they differ."""

    full: float
    pruned: float
    difference: float  # the largest absolute difference of a logit from zero ablation


_measurements = ResultSlots[Measurement](8)


def show(view: View, heads: tuple[Head, ...]) -> None:
    """Sizes and times before and after pruning the heads, and buttons to keep the result."""
    if not heads:
        st.info("Ablate heads on the board first; then you can prune them here for good.")
        return
    try:
        pruned = pruning.pruned_model(view.model, heads)
    except MhaVizError as error:
        problem(str(error))
        return
    explained.paragraph(
        "An ablated head is still computed; then its output is discarded or replaced. Pruning "
        "deletes its rows of W_Q, W_K and W_V and its columns of W_O; b_O stays. Layers may then "
        "differ in their number of heads. Pruned heads contribute zero, whatever ablation type is "
        "selected."
    )
    _savings(view, pruned, heads)
    _keep(view, pruned, heads)


def _savings(view: View, pruned: Model, heads: tuple[Head, ...]) -> None:
    """The sizes and the speed of the full and of the pruned model."""
    measurement = _measure(view, pruned, heads)
    if measurement is None:
        return
    caption(
        "Before and after",
        f"Milliseconds: one forward pass of this text, median of {REPEATS}, alternating "
        f"between the models. The logits differ by at most {measurement.difference:.1e} from those "
        "with the heads zero-ablated.",
    )
    before, after = pruning.size(view.model.network), pruning.size(pruned.network)
    pairs = {
        "heads": (before.n_heads, after.n_heads),
        "parameters": (before.n_parameters, after.n_parameters),
        "bytes": (before.n_bytes, after.n_bytes),
        "milliseconds": (round(1e3 * measurement.full, 2), round(1e3 * measurement.pruned, 2)),
    }
    header = ["", "full model", "pruned", "change"]
    table(header, [[name, f"{a:,}", f"{b:,}", _change(a, b)] for name, (a, b) in pairs.items()])
    rows = [[name, a, b, _change(a, b)] for name, (a, b) in pairs.items()]
    download_table("pruned.csv", header, rows)


def _measure(view: View, pruned: Model, heads: tuple[Head, ...]) -> Measurement | None:
    ids = view.trace.token_ids
    text = ids if len(ids) > 1 else ids * 2

    def work(report: Reporter) -> Measurement:
        full_s, pruned_s = pruning.forward_seconds(
            (view.model, pruned), text, repeats=REPEATS, on_progress=report
        )
        return Measurement(full_s, pruned_s, _difference(view, pruned, heads))

    slot = _measurements(view.trace_key, heads)
    return wait_for(slot, "Measuring both models", work, lane="pruned model")


@torch.inference_mode()
def _difference(view: View, pruned: Model, heads: tuple[Head, ...]) -> float:
    ids = torch.tensor([view.trace.token_ids], device=view.model.device)
    gate = pruning.gate_without(view.model.config, heads).to(view.model.device)
    ablated = view.model.network(ids, head_gate=gate)
    return float((ablated - pruned.network(ids)).abs().max())


def _change(before: float, after: float) -> str:
    return f"{(after - before) / before:+.1%}".replace("-", "−")


def _keep(view: View, pruned: Model, heads: tuple[Head, ...]) -> None:
    """Buttons that save or download the pruned model."""
    caption(
        "Keep the model",
        "“Pruned” is smaller and opens in this app. “Zeroed” is a standard GPT-2 with zeros in "
        "these heads' rows of c_proj; transformers, which no longer prunes GPT-2 heads, loads it "
        "with the same logits.",
    )
    writers: dict[str, Writer] = {
        "pruned": lambda folder: checkpoints.save(pruned, folder),
        "zeroed": lambda folder: checkpoints.write_zeroed(view.model, heads, folder),
    }
    if serves_this_machine_only():
        _save(writers, f"{view.about.weights_hash} {heads}")
    if pruning.size(view.model.network).n_bytes <= LARGEST_ZIP:
        with st.container(horizontal=True):
            for name, write in writers.items():
                st.download_button(
                    f"Download {name} (.zip)",
                    partial(_zipped, write),
                    f"gpt2-{name}.zip",
                    "application/zip",
                    on_click="ignore",
                    key=f"zip {name}",
                    icon=":material/download:",
                )


@dataclass(frozen=True, slots=True)
class SaveRequest:
    """A click on a Save button: which version of which model goes to which folder."""

    version: str
    model: str
    folder: str
    slot: ResultSlot[str]


def _save(writers: dict[str, Writer], model: str) -> None:
    """A folder on this machine, and buttons that save to it; `model` says what is saved."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        folder = explained.text_input("Folder on this machine", "./pruned", key="prune_folder")
        for version in writers:
            label = f"Save {version}"
            args = (version, model)
            st.button(label, on_click=_request_save, args=args, icon=":material/save:")
    # Kept until the next click, because writing takes several runs of the page.
    request: SaveRequest | None = st.session_state.get("save_request")
    if request is None or (request.model, request.folder) != (model, folder):
        return

    def work(report: Reporter) -> str:
        return _write(folder, writers[request.version], report)

    if saved := wait_for(request.slot, f"Writing the {request.version} model", work, lane="save"):
        st.success(f"Saved in {saved}. To open it, enter this folder as the model.")
    elif not was_stopped(request.slot):  # it failed, and must not start again by itself
        del st.session_state["save_request"]


def _request_save(version: str, model: str) -> None:
    state = st.session_state
    state["save_request"] = SaveRequest(version, model, state["prune_folder"], ResultSlot())


def _write(folder: str, write: Writer, report: Reporter) -> str:
    """Writes a model and returns its path. Leaves nothing behind after a stop or a failure."""
    try:
        if not folder.strip():
            raise MhaVizError("Enter a folder.")
        path = Path(folder).expanduser()
        if path.is_file():
            raise MhaVizError(f"{folder} is a file. Enter a folder.")
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise MhaVizError(f"{folder} already exists and is not empty. Enter another folder.")
        existed = path.exists()
        try:
            write(path)
            report(1.0)
        except (Halt, MhaVizError, OSError, RuntimeError):
            shutil.rmtree(path, ignore_errors=True)
            if existed:
                path.mkdir()
            raise
    except (MhaVizError, OSError, RuntimeError) as error:
        raise MhaVizError(f"Not saved: {error}") from error
    return str(path.resolve())


def _zipped(write: Writer) -> bytes:
    buffer = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / "model")
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
            for file in sorted((Path(folder) / "model").iterdir()):
                archive.write(file, file.name)
    return buffer.getvalue()
