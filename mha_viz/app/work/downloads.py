"""Downloads of models: one job per model, shared by all users, with progress and a Stop button."""

import threading
from collections.abc import Iterator

import streamlit as st

from mha_viz.app.messages import plain, problem
from mha_viz.app.work import progress
from mha_viz.app.work.jobs import Job, Queue, Reporter
from mha_viz.app.work.models import HUB_SIZES, TITLES
from mha_viz.checkpoints import hub
from mha_viz.errors import Cancelled, MhaVizError

TICK = 0.4  # seconds between updates of the progress


class Download(Job[hub.Fetched]):
    """One download; the part that has arrived stays on disk after a stop."""

    crashed = "The download stopped unexpectedly. Try again; if that fails, check the server log."

    def __init__(self, source: str) -> None:
        super().__init__(self._fetch, total=1)
        self.source = source
        self.arrived = hub.Progress(0, 0, "")

    def _fetch(self, report: Reporter) -> Iterator[hub.Fetched]:
        try:
            # `over` is set by a stop; the Hub's client then closes its files before it ends.
            yield hub.fetch(self.source, on_progress=self._note, cancel=self.over)
        except Cancelled:
            return

    def _note(self, arrived: hub.Progress) -> None:
        self.arrived = arrived
        self.fraction = arrived.done / arrived.total if arrived.total else 0.0


_downloads: dict[str, Download] = {}
_queue = Queue(workers=8)  # they wait for the network, not for the CPU
_guard = threading.Lock()


def start(source: str) -> None:
    """Starts a download, unless that model is being downloaded already."""
    st.session_state["downloading"] = source
    with _guard:
        if running(source) is None:
            _downloads[source] = job = Download(source)
            try:
                _queue.submit(job)
            except MhaVizError as error:
                job.error, job.state = str(error), "failed"


def running(source: str) -> Download | None:
    """The running download of that model, if any."""
    job = _downloads.get(source)
    return job if job is not None and job.active else None


def offer(source: str) -> None:
    """Offers to download a model that is not on this machine, or shows the running download."""
    if running(source):
        _watch(source)
        return
    # Only the user who started an earlier attempt sees how it ended.
    job = _downloads.get(source) if st.session_state.get("downloading") == source else None
    if job is not None and job.error:
        problem(job.error)
    size = f" ({HUB_SIZES[source]})" if source in HUB_SIZES else ""
    resumes = (
        " The part already downloaded is kept." if job is not None and job.arrived.done else ""
    )
    name = TITLES.get(source, source)
    st.info(
        f"**{plain(name)}** is not on this machine yet{plain(size)}. Downloading it contacts the "
        f"Hugging Face Hub.{plain(resumes)}",
        icon=":material/cloud_download:",
    )
    label = "Download" if job is None else "Try again"
    st.button(label, on_click=start, args=(source,), type="primary")


@st.fragment(run_every=TICK)
def _watch(source: str) -> None:
    job = running(source)
    if job is None:
        st.rerun()
    done, total = job.arrived.done, job.arrived.total
    text = f"{done / 1e6:,.0f} of {total / 1e6:,.0f} MB" if total else "contacting the Hub"
    progress.row(job, f"Downloading {plain(source)}: {text}", key="download")
