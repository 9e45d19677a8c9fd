"""Downloads that run beside the page: one a model, with progress and a way to stop."""

import threading
from dataclasses import dataclass, field

import streamlit as st

from mha_viz.app.messages import plain, problem
from mha_viz.app.work.models import HUB_SIZES, TITLES
from mha_viz.checkpoints import hub
from mha_viz.errors import Cancelled, MhaVizError

TICK = 0.4  # seconds between two looks at a download


@dataclass
class Job:
    """One download; written by its thread, read by any number of pages."""

    source: str
    cancel: threading.Event = field(default_factory=threading.Event)
    progress: hub.Progress | None = None
    error: str = "The download ended without a word; the server's log may say why. Try again."
    done: bool = False

    def run(self) -> None:
        """Fetches, and leaves behind how it went; a stop by the visitor is no error."""
        try:
            hub.fetch(self.source, on_progress=self._note, cancel=self.cancel)
            self.error = ""
        except Cancelled:
            self.error = ""
        except MhaVizError as error:
            self.error = str(error)
        finally:
            self.done = True

    def _note(self, progress: hub.Progress) -> None:
        self.progress = progress


_jobs: dict[str, Job] = {}
_guard = threading.Lock()


def start(source: str) -> None:
    """Begins to fetch, unless that is under way."""
    st.session_state["fetching"] = source
    with _guard:
        if source not in _jobs or _jobs[source].done:
            _jobs[source] = Job(source)
            threading.Thread(target=_jobs[source].run, daemon=True).start()


def running(source: str) -> Job | None:
    """The download of a model that is under way now, if any."""
    job = _jobs.get(source)
    return job if job is not None and not job.done else None


def offer(source: str) -> None:
    """Says that a model is not on this machine, and lets the visitor fetch it, watch, and stop."""
    if running(source):
        _watch(source)
        return
    # How an earlier try went concerns the one who made it.
    job = _jobs.get(source) if st.session_state.get("fetching") == source else None
    if job is not None and job.error:
        problem(job.error)
    size = HUB_SIZES.get(source, "")
    about = f" It has {size}." if size else ""
    arrived = job is not None and job.progress is not None and job.progress.done
    resumes = " What has arrived is kept." if arrived else ""
    name = TITLES.get(source, source)
    st.info(
        f"**{plain(name)}** is not on this machine yet.{plain(about)} Fetching it asks the model "
        f"hub; nothing else here uses the network.{plain(resumes)}",
        icon=":material/cloud_download:",
    )
    st.button(
        "Fetch it" if job is None else "Try again", on_click=start, args=(source,), type="primary"
    )


@st.fragment(run_every=TICK)
def _watch(source: str) -> None:
    job = running(source)
    if job is None:
        st.rerun()
    done, total = (job.progress.done, job.progress.total) if job.progress else (0, 0)
    share = done / total if total else 0.0
    told = f"{done / 1e6:,.0f} of {total / 1e6:,.0f} MB" if total else "asking the hub"
    st.progress(min(share, 1.0), text=f"Fetching {plain(source)}: {told}")
    if st.button("Stop", key="stop_download"):
        job.cancel.set()
