"""The user's own text with one word changed, chosen so that something happens."""

from collections.abc import Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from mha_viz.analysis.minimal_pair import Pairs, Swap, swapped
from mha_viz.app.pages.compare.sides import OtherSide, ranked_pairs
from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.chart import record_settings
from mha_viz.app.widgets.choices import check_link
from mha_viz.app.work.progress import Reporter, ResultSlots, wait_for
from mha_viz.export import Given
from mha_viz.trace import Trace

KEY = "swap"
MADE = "model.trace_ids(swapped(trace.token_ids, swap_position, swap_token))"

_traces = ResultSlots[Trace](8)


def one_word(view: View, bar: DeltaGenerator) -> OtherSide | None:
    """The text with one word changed; None while it is looked for, or if no word can change.

    The choice of the word is drawn in `bar`.
    """
    pairs = ranked_pairs(view)
    if pairs is None:
        return None
    if not pairs.swaps:
        st.info(
            "No token before the selected one can be changed. Choose a later token or type a "
            "longer text; or compare with another text."
        )
        return None
    swap = _choose(view, pairs, bar)
    trace = _traced(view, swap)
    if trace is None:
        return None
    given = {
        "swap_position": swap.position,
        "swap_token": swap.token,
        "other": Given(trace, MADE, __name__),
        "other_model": Given(view.model, "model"),
        "gate": None,
    }
    record_settings(
        One_word_changed=f"{view.trace.tokens[swap.position]} at position {swap.position} became "
        f"{trace.tokens[swap.position]}",
    )
    return OtherSide(
        trace, _key(view, swap), view.model, "one word changed", swap=swap, given=given
    )


def _traced(view: View, swap: Swap) -> Trace | None:
    def work(report: Reporter) -> Trace:
        ids = swapped(view.trace.token_ids, swap.position, swap.token)
        return view.model.trace_ids(ids, on_layer=lambda n: report(n / view.trace.n_layers))

    return wait_for(_traces(_key(view, swap)), "Running the model", work, lane="other text")


def _key(view: View, swap: Swap) -> str:
    return f"{view.trace_key} {swap.position} {swap.token}"


def _choose(view: View, pairs: Pairs, bar: DeltaGenerator) -> Swap:
    """The swap that the user chose, at first the best; a button goes on to the next."""
    state, swaps = st.session_state, {_label(view, swap): swap for swap in pairs.swaps}
    labels = list(swaps)
    if KEY not in state and KEY not in st.query_params and state.get(f"{KEY}_kept") in swaps:
        state[KEY] = state[f"{KEY}_kept"]  # back from another page
    if state.get(KEY, labels[0]) not in swaps:
        del state[KEY]  # of another text
    with bar:
        chosen: str = explained.selectbox(
            "Word changed",
            labels,
            key=KEY,
            bind="query-params",
            width=230,
            label_visibility="collapsed",
        )
        if len(labels) > 1:
            after = labels[(labels.index(chosen) + 1) % len(labels)]
            st.button("Another word", on_click=_take, args=(after,), icon=":material/refresh:")
    check_link(KEY, chosen)
    state[f"{KEY}_kept"] = chosen
    if pairs.tried < pairs.possible:
        explained.note(
            f"The best of the {pairs.tried:,} changes that were tried. A short list of words "
            f"allows {pairs.possible:,}, and trying them all would take too long."
        )
    return swaps[chosen]


def _take(label: str) -> None:
    st.session_state[KEY] = label


def _label(view: View, swap: Swap) -> str:
    old, new = view.trace.tokens[swap.position], view.model.read([swap.token])[0].label
    return f"{_word(old)} → {_word(new)} ({swap.position})"


def _word(label: str) -> str:
    return label.removeprefix("·") or label


def changed_words(view: View, other: OtherSide) -> Sequence[str]:
    """The word before and after the change, without the mark of a space."""
    position = other.swap.position if other.swap else 0
    return [_word(trace.tokens[position]) for trace in (view.trace, other.trace)]
