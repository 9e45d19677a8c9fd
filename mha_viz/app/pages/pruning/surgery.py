"""The Take out part: heads really gone, what that saves, and the model to take away."""

import io
import shutil
import tempfile
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import streamlit as st
import torch

from mha_viz import checkpoints, pruning
from mha_viz.app.inputs import serves_this_machine_only
from mha_viz.app.messages import problem
from mha_viz.app.view import View
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.download_buttons import download_table
from mha_viz.app.widgets.tables import table
from mha_viz.app.work.progress import Halt, Reporter, ResultSlot, ResultSlots, wait_for, was_stopped
from mha_viz.errors import MhaVizError
from mha_viz.model import Model
from mha_viz.pruning import Head

LARGEST_ZIP = 150e6  # bytes of weights that are packed for the browser
REPEATS = 7
_measured = ResultSlots[tuple[list[float], float]](8)


def show(view: View, off: tuple[Head, ...]) -> None:
    """Sizes and times before and after, and how to keep the result."""
    if not off:
        st.info("Switch off what should go; then it is taken out here.")
        return
    try:
        few = pruning.pruned_model(view.model, off)
    except MhaVizError as error:
        problem(str(error))
        return
    st.markdown(
        "Switching off multiplies by nought what was computed all the same. Taken out, the rows of "
        "W_Q, W_K and W_V and the columns of W_O of these heads are gone, and layers may keep "
        "different numbers of heads, or none; b_O stays. A head that is taken out gives zero, "
        "whatever way is chosen at the left."
    )
    _sizes(view, few, off)
    _keep(view, few, off)


def _sizes(view: View, few: Model, off: tuple[Head, ...]) -> None:
    ids = view.trace.token_ids
    text = ids if len(ids) > 1 else ids * 2

    def work(report: Reporter) -> tuple[list[float], float]:
        both = (view.model, few)
        times = pruning.forward_seconds(both, text, repeats=REPEATS, on_progress=report)
        return times, _difference(view, few, off)

    found = wait_for(_measured(view.trace_key, off), "Measuring both", work, lane="surgery")
    if found is None:
        return
    times, difference = found
    caption(
        "Before and after",
        f"time of one forward pass of this text, median of {REPEATS}, in turns; logits differ by "
        f"{difference:.1e} at most from those with the heads switched off.",
    )
    before, after = pruning.size(view.model.network), pruning.size(few.network)
    rows: list[list[object]] = [
        ["heads", before.n_heads, after.n_heads, _less(before.n_heads, after.n_heads)],
        ["parameters", before.n_parameters, after.n_parameters,
         _less(before.n_parameters, after.n_parameters)],
        ["bytes, float32", before.n_bytes, after.n_bytes, _less(before.n_bytes, after.n_bytes)],
        ["milliseconds", round(1e3 * times[0], 2), round(1e3 * times[1], 2), _less(*times)],
    ]  # fmt: skip
    header = ["", "whole", "without", "change"]
    shown = [[row[0], *(f"{n:,}" for n in row[1:3]), row[3]] for row in rows]
    table(header, shown)
    download_table("taken_out.csv", header, rows)


@torch.inference_mode()
def _difference(view: View, few: Model, off: tuple[Head, ...]) -> float:
    ids = torch.tensor([view.trace.token_ids], device=view.model.device)
    gate = pruning.gate_without(view.model.config, off).to(view.model.device)
    gated = view.model.network(ids, head_gate=gate)
    return float((gated - few.network(ids)).abs().max())


def _less(before: float, after: float) -> str:
    return f"{(after - before) / before:+.1%}".replace("-", "−")


def _keep(view: View, few: Model, off: tuple[Head, ...]) -> None:
    caption(
        "Take it away",
        "“Without them” is smaller and opens here. “With zeros” is a plain GPT-2 whose weights "
        "from these heads are zero: transformers, which prunes GPT-2 no more, loads it with the "
        "same logits.",
    )
    ways: dict[str, Callable[[Path], None]] = {
        "Without them": lambda folder: checkpoints.save(few, folder),
        "With zeros": lambda folder: checkpoints.write_zeroed(view.model, off, folder),
    }
    if serves_this_machine_only():
        _save_here(ways, f"{view.about.weights_hash} {off}")
    if pruning.size(view.model.network).n_bytes <= LARGEST_ZIP:
        with st.container(horizontal=True):
            for name, write in ways.items():
                st.download_button(
                    f"{name} (.zip)", partial(_zipped, write),
                    f"gpt2-{name.lower().replace(' ', '-')}.zip", "application/zip",
                    on_click="ignore", key=f"zip {name}", icon=":material/download:",
                )  # fmt: skip


def _save_here(ways: dict[str, Callable[[Path], None]], of: str) -> None:
    """A folder of this machine to write to; `of` names what is written."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        folder = st.text_input("Folder on this machine", "./pruned", key="prune_folder")
        for name in ways:
            st.button(name, on_click=_ask_to_save, args=(name, of), icon=":material/save:")
    # Kept until the next press: writing goes on over several runs of the page.
    asked: tuple[str, str, str, ResultSlot[str]] | None = st.session_state.get("saving")
    if asked is None or asked[1:3] != (of, folder):
        return
    name, slot = asked[0], asked[3]

    def work(report: Reporter) -> str:
        return _written(folder, ways[name], report)

    if saved := wait_for(slot, f"Writing {name.lower()}", work, lane="saving"):
        st.success(f"Saved in {saved}. Type the folder as Model to open it.")
    elif not was_stopped(slot):  # it failed, and is not tried again by itself
        del st.session_state["saving"]


def _ask_to_save(name: str, of: str) -> None:
    state = st.session_state
    state["saving"] = name, of, state["prune_folder"], ResultSlot()


def _written(folder: str, write: Callable[[Path], None], report: Reporter) -> str:
    """Where it was written; nothing is left behind where it was stopped or failed."""
    try:
        if not folder.strip():
            raise MhaVizError("Name a folder to save in.")
        place = Path(folder).expanduser()
        if place.is_file():
            raise MhaVizError(f"{folder} is a file. Name a folder.")
        if place.exists() and (not place.is_dir() or any(place.iterdir())):
            raise MhaVizError(f"{folder} is there already and not empty. Name another folder.")
        was_there = place.exists()
        try:
            write(place)
            report(1.0)
        except (Halt, MhaVizError, OSError, RuntimeError):
            shutil.rmtree(place, ignore_errors=True)
            if was_there:
                place.mkdir()
            raise
    except (MhaVizError, OSError, RuntimeError) as error:
        raise MhaVizError(f"Not saved: {error}") from error
    return str(place.resolve())


def _zipped(write: Callable[[Path], None]) -> bytes:
    buffer = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / "model")
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
            for file in sorted((Path(folder) / "model").iterdir()):
                archive.write(file, file.name)
    return buffer.getvalue()
