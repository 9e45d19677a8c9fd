"""How a head is removed: the choice, what it means, and what stands in for the head."""

import streamlit as st

from mha_viz.pruning import METHODS, Fill, Method, make_fill
from mha_viz.session.chart import noted
from mha_viz.session.choices import one_of
from mha_viz.session.reference_text import Reference
from mha_viz.session.view import View

WORDS: dict[Method, str] = {
    "zero": "Its z is nought before W_O; the bias b_O stays. What \"without this head\" says, and "
    "a value that the layers above have never seen.",
    "mean": "Its z is the mean over the reference text and all positions: what it always adds "
    "stays, what it tells apart is gone.",
    "position-mean": "Its z is the mean over the reference text at the same position.",
    "resample": "Its z comes from another text: a value the head could have had, about something "
    "else.",
}  # fmt: skip


def way() -> Method:
    """The chosen way, with what it means."""
    chosen: Method = one_of("A removed head gives", METHODS, "zero", "way")
    st.caption(WORDS[chosen])
    noted(A_removed_head_gives=chosen)
    return chosen


def fill(view: View, method: Method, length: int, reference: Reference) -> Fill:
    """What stands in for a removed head, in texts of up to `length` tokens.

    Raises TextError where the reference text is shorter than that.
    """
    key = f"{view.about.weights_hash} {reference.key}"
    return _fill(key, method, 0 if method == "zero" else length, _view=view, _reference=reference)


@st.cache_resource(max_entries=16, show_spinner="Reading the reference text…")
def _fill(key: str, method: Method, length: int, *, _view: View, _reference: Reference) -> Fill:
    del key  # only tells models and texts apart
    return make_fill(_view.model, method, length, _reference.choosing)
