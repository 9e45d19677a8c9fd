"""How a head is removed: the choice, what it means, and what stands in for the head."""

import streamlit as st

from mha_viz.app.view import View
from mha_viz.app.widgets.chart import record_settings
from mha_viz.app.widgets.choices import segmented_control
from mha_viz.app.widgets.reference_text import Reference
from mha_viz.app.work.progress import Reporter, ResultSlots, wait_for
from mha_viz.pruning import METHODS, ZERO, Method, Replacement, make_replacement

_fills = ResultSlots[Replacement](16)
WORDS: dict[Method, str] = {
    "zero": "Its z is nought before W_O; the bias b_O stays. What \"without this head\" says, and "
    "a value that the layers above have never seen.",
    "mean": "Its z is the mean over the reference text and all positions: what it always adds "
    "stays, what it tells apart is gone.",
    "position-wise mean": "Its z is the mean over the reference text at the same position.",
    "resample": "Its z comes from another text: a value the head could have had, about something "
    "else.",
}  # fmt: skip


def way() -> Method:
    """The chosen way, with what it means."""
    chosen: Method = segmented_control("A removed head gives", METHODS, "zero", "way")
    st.caption(WORDS[chosen])
    record_settings(A_removed_head_gives=chosen)
    return chosen


def fill(view: View, method: Method, length: int, reference: Reference) -> Replacement | None:
    """What stands in for a removed head, in texts of up to `length` tokens.

    None after the page has said why there is none: the reference text may be shorter than that.
    """
    if method == "zero":
        return ZERO

    def work(report: Reporter) -> Replacement:
        return make_replacement(view.model, method, length, reference.selection, on_progress=report)

    slot = _fills(view.about.weights_hash, reference.key, method, length)
    return wait_for(slot, "Reading the reference text", work, lane="fill")
