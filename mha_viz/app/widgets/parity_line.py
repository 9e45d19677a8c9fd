"""The line that says how closely a page's numbers match transformers in eager mode.

It runs as a separate job after the page is drawn, and starts by itself if it is quick.
"""

import sys
import time
from collections.abc import Callable

import streamlit as st

from mha_viz.app import glossary
from mha_viz.app.messages import escaped, plain
from mha_viz.app.view import View
from mha_viz.app.work import jobs
from mha_viz.app.work.jobs import Job, Queue
from mha_viz.app.work.progress import TICK, Reporter, ResultSlot, ResultSlots, beside
from mha_viz.checkpoints.parity import LOGITS, PATTERNS, Parity, check
from mha_viz.errors import MhaVizError

AT_ONCE = 1e11  # multiply-adds up to which it starts by itself: GPT-2 small on 400 tokens
MAX_PARAMETERS = 1e9  # of a model whose second copy a server can be expected to hold
PAUSE = 2.0  # seconds for the first picture, before the import of transformers slows it down
MODULE = "transformers.models.gpt2.modeling_gpt2"
COVERS = (
    f"Compares every pattern (limit {PATTERNS:.0e}) and the logits at every position (limit "
    f"{LOGITS:.0e} of the largest one) with transformers' GPT-2 in eager mode, in float32 on the "
    "CPU. The result applies to the model and the text of the sidebar, with all heads of that "
    "model. It does not cover another text, another model or ablated heads on this page."
)

_found = ResultSlots[Parity](32)
_queue = Queue(workers=1)  # each comparison holds a second copy of a model


def parity_line(view: View) -> None:
    """The result for the view's trace, green or red; until then, the progress or a button."""
    slot = _found(view.trace_key)
    with st.container(key="parity"):
        if slot.result is None and _may_start(view):
            _compare(view, slot)
        if slot.result is not None:
            _result(slot.result)


def _may_start(view: View) -> bool:
    """Whether to compare now; otherwise says why not, or offers it."""
    n = view.about.n_parameters
    if n > MAX_PARAMETERS:
        _say(
            f"Not compared with transformers here: a second copy of {n / 1e9:.1f} billion "
            "parameters may not fit into memory. Run <code>mha-viz check</code> instead."
        )
        return False
    asked: set[str] = st.session_state.setdefault("comparisons asked for", set())
    if 2 * n * view.trace.n_tokens <= AT_ONCE or view.trace_key in asked:
        return True
    _offer("Compare these numbers with transformers", asked.add, view.trace_key)
    return False


def _compare(view: View, slot: ResultSlot[Parity]) -> None:
    """Starts the comparison in the background, or shows its progress, or why it failed."""

    def work(report: Reporter) -> Parity:
        if MODULE not in sys.modules:
            time.sleep(PAUSE)
        return check(view.model, view.trace, on_progress=report)

    try:
        job = beside(slot, work, lane="parity", queue=_queue)
    except MhaVizError as error:
        _say(f"Not compared with transformers. {escaped(str(error))}")
        return
    if job is not None and job.active:
        _watch(slot.name, job)
    elif job is not None:
        _say(f"Not compared with transformers. {escaped(job.error)}")
        _offer("Compare again", jobs.forget, slot.name)


@st.fragment(run_every=TICK)
def _watch(name: str, job: Job[Parity]) -> None:
    """The progress; the page runs again when the job is over."""
    jobs.find(name)  # keeps the job alive while the page is open
    if not job.active:
        st.rerun()
    _say(f"Comparing with transformers… {job.share:.0%}", "waiting")


def _result(parity: Parity) -> None:
    where = f"transformers in eager mode (T = {parity.n_tokens:,}, {parity.device})"
    more = f" {escaped(_reference(parity))}"
    covers = f"{COVERS} {plain(parity.reference)} {plain(parity.token_reference)}"
    if parity.ok:
        _say(
            f"<b>✓</b> Matches {where}: logits differ by at most {parity.logits.value:.1e}, "
            f"patterns by at most {parity.patterns.value:.1e}.{more}".rstrip(),
            "good",
            covers,
        )
    else:
        _say(
            f"<b>✗</b> Does not match {where}: {escaped('; '.join(parity.problems))}. Do not trust "
            f"the numbers on this page.{more}".rstrip(),
            "bad",
            covers,
        )


def _reference(parity: Parity) -> str:
    """What was not compared with what transformers reads from the files; "" if everything was."""
    said = [parity.reference] if parity.unread else []
    if parity.tokens_skipped or parity.unread_tokens:
        said.append(parity.token_reference)
    return " ".join(said)


def _say(text: str, kind: str = "", covers: str = COVERS) -> None:
    line = f'<div class="caption parity {kind}" role="status">{text}</div>'
    st.markdown(line, unsafe_allow_html=True, help=glossary.help_for(text, covers))


def _offer(label: str, then: Callable[[str], None], name: str) -> None:
    st.button(label, key="compare", type="tertiary", on_click=then, args=(name,), help=COVERS)
