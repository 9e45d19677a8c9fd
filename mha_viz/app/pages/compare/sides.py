"""What the text in the sidebar is compared with, and how it is chosen."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import streamlit as st

from mha_viz import pruning
from mha_viz.analysis import compare
from mha_viz.analysis.compare import Alignment
from mha_viz.analysis.logit_attribution import heads_towards
from mha_viz.analysis.minimal_pair import Pairs, Swap, minimal_pairs, swapped
from mha_viz.app import inputs
from mha_viz.app.messages import notice
from mha_viz.app.samples import DEFAULT
from mha_viz.app.view import View
from mha_viz.app.widgets import explained, head_board, text_read
from mha_viz.app.widgets.chart import record_settings
from mha_viz.app.widgets.choices import text_area
from mha_viz.app.widgets.recipes import loaded
from mha_viz.app.widgets.recipes import traced as traced_by_scripts
from mha_viz.app.work import models
from mha_viz.app.work.progress import Reporter, ResultSlots, wait_for
from mha_viz.export import Given
from mha_viz.head import Head
from mha_viz.model import Model
from mha_viz.trace import Array, Trace

OTHER_TEXT = DEFAULT.replace("king", "queen")
ITSELF = "the same model, some heads ablated"
GATE = "pruning.gate_without(model.config, ablated).numpy()"
N_OFFERED = 3  # heads that are ablated at first

_pairs = ResultSlots[Pairs](16)
_ablated_traces = ResultSlots[Trace](8)
_offered = ResultSlots[tuple[Head, ...]](16)


@dataclass(frozen=True, slots=True, eq=False)
class OtherSide:
    """What the text and the model in the sidebar are compared with."""

    trace: Trace
    trace_key: str
    model: Model
    name: str  # in captions
    first_name: str = "this text"  # of the side in the sidebar
    gate: Array | None = None  # [L, H] of the other side
    ablated: tuple[Head, ...] = ()
    swap: Swap | None = None  # the word that was changed
    given: Mapping[str, Any] = field(default_factory=dict)  # what scripts need to make the trace

    def alignment(self, trace: Trace) -> Alignment:
        """The pairs of positions of `trace` and of this side; a changed word pairs with the old."""
        if self.swap is None:
            return compare.align_traces(trace, self.trace)
        return compare.every_position(trace)

    @property
    def alignment_code(self) -> str:
        """The expression that computes the alignment in scripts."""
        call = "align_traces(trace, other)" if self.swap is None else "every_position(trace)"
        return f"compare.{call}"


def other_text(view: View) -> OtherSide | None:
    """A text that the user types, at first this text with a word changed."""
    _offer_text(view)
    text = text_area("Other text", OTHER_TEXT, "other_text", height=90)
    if not text:
        st.info("Type another text. Tokens that occur in both texts in the same order are aligned.")
        return None
    traced = models.trace(
        view.source,
        view.device,
        text,
        view.trace.cut,
        template=view.model.template,
        lane="other text",
    )
    record_settings(Compared_with_the_text=text)
    if traced is None:
        return None
    trace, trace_key = traced
    record_settings(Its_token_ids=trace.token_ids)
    _warn_of_dropped_tokens(trace, "The other text", view.about.name)
    text_read.warn_of_replaced_characters(trace, "The other text")
    text_read.warn_of_changed_text(trace, "the other text")
    given = {"other_text": text, "other": traced_by_scripts(trace, "model", "other_text")}
    return OtherSide(trace, trace_key, view.model, "the other text", given=_same_model(view, given))


def other_model(view: View) -> OtherSide | None:
    """The same text in another model, at first in the same one without the heads that matter."""
    source: str = explained.selectbox(
        "Other model",
        [ITSELF, *models.TITLES],
        key="other_model",
        bind="query-params",
        accept_new_options=True,
        help="Predictions are always compared; heads only if the model has as many layers and "
        "heads as the one in the sidebar.",
    )
    if not source or source == ITSELF:
        heads = heads_that_matter(view)
        if not heads:
            return None
        labels = ", ".join(head.label for head in heads)
        explained.note(
            f"This is the model in the sidebar with {labels} ablated: the heads that raise its "
            "prediction most. Choose another model above, or type the name of one on the Hub."
        )
        record_settings(Compared_with=f"{view.about.name}, ablated: {labels}")
        return without_heads(view, heads)
    model = inputs.obtain(source, view.device, lane="other model")
    if model is None:
        return None
    model = model.with_template(view.model.template)
    first = view.trace
    traced = models.trace(
        source,
        view.device,
        first.text,
        first.cut,
        template=view.model.template,
        lane="other text",
    )
    about = model.description
    record_settings(Compared_with=f"{about.name} ({about.source}), SHA-256 {about.weights_hash}")
    if traced is None:
        return None
    trace, trace_key = traced
    _warn_of_dropped_tokens(trace, "The text", about.name)
    given = {
        "other_model": loaded(source, model, view.device),
        "other": traced_by_scripts(trace, "other_model"),
        "gate": None,
    }
    return OtherSide(trace, trace_key, model, about.name, view.about.name, given=given)


def ablated_heads(view: View) -> OtherSide | None:
    """The same model without the heads that are clicked on a board."""
    _offer_heads(view)
    left, right = st.columns([2, 3], gap="medium", vertical_alignment="center")
    with right:
        heads = head_board.ablated_heads(view)
        head_board.buttons(view)
    with left:
        head_board.board(view, heads)
    if not heads:
        st.info("Click heads on the board to ablate them.")
        return None
    return without_heads(view, heads)


def without_heads(view: View, heads: tuple[Head, ...]) -> OtherSide | None:
    """The same text without these heads; None while it runs."""
    gate = pruning.gate_without(view.model.config, heads).numpy()

    def work(report: Reporter) -> Trace:
        def on_layer(done: int) -> None:
            report(done / view.trace.n_layers)

        return view.model.trace_ids(view.trace.token_ids, head_gate=gate, on_layer=on_layer)

    trace_key = f"{view.trace_key} {heads}"
    slot = _ablated_traces(trace_key)
    trace = wait_for(slot, "Running with these heads ablated", work, lane="other text")
    if trace is None:
        return None
    name = f"{len(heads)} head{'s' * (len(heads) != 1)} ablated"
    made = "model.trace_ids(trace.token_ids, head_gate=gate)"
    given = {
        "other_model": Given(view.model, "model"),
        "ablated": heads,
        "gate": Given(gate, GATE, __name__),
        "other": Given(trace, made),
    }
    return OtherSide(
        trace, trace_key, view.model, name, "full model", gate=gate, ablated=heads, given=given
    )


def heads_that_matter(view: View) -> tuple[Head, ...]:
    """The heads that raise the most likely next token most at the chosen token; () while it runs.

    All but one are below the last layer, so that patterns change too. The selected head is not
    among them, since its own pattern says nothing then.
    """
    model, ids, position, selected = view.model, view.trace.token_ids, view.token, view.at

    def work(report: Reporter) -> tuple[Head, ...]:
        del report
        # The trace has the logits of the last position only.
        logits = model.trace_ids(ids[: position + 1]).logits
        effects = heads_towards(model, ids, int(logits.argmax()), position=position)
        effects[selected] = np.nan
        order = np.argsort(-np.nan_to_num(effects, nan=-np.inf), axis=None)
        heads = [Head(*divmod(int(flat), effects.shape[1])) for flat in order]
        heads = [head for head in heads if np.isfinite(effects[head])]
        # A head of the last layer changes no pattern.
        below = [head for head in heads if head.layer < len(effects) - 1][: N_OFFERED - 1]
        rest = [head for head in heads if head not in below][: N_OFFERED - len(below)]
        return tuple(sorted([*below, *rest]))

    slot = _offered(view.trace_key, position, selected)
    return wait_for(slot, "Looking for heads that matter", work, lane="heads that matter") or ()


def _offer_heads(view: View) -> None:
    """Ablates the heads that matter, once, if the user has not chosen any yet."""
    state = st.session_state
    touched = "off" in state or "off" in st.query_params or "off_kept" in state
    if not touched and (heads := heads_that_matter(view)):
        state["off"] = "-".join(head.key for head in heads)


def ranked_pairs(view: View) -> Pairs | None:
    """The swaps of a word that change most at the selected token; None while they are tried."""

    def work(report: Reporter) -> Pairs:
        return minimal_pairs(view.model, view.trace.token_ids, view.token, on_progress=report)

    slot = _pairs(view.trace_key, view.token)
    return wait_for(slot, "Looking for a word whose change shows", work, lane="minimal pairs")


def _offer_text(view: View) -> None:
    """Begins with the user's text and one word changed, unless another text was typed before."""
    state = st.session_state
    touched = any(key in state for key in ("other_text", "other_text_typed"))
    if touched or "other_text" in st.query_params or view.trace.text == DEFAULT:
        return
    pairs = ranked_pairs(view)
    if pairs is not None and pairs.swaps:
        first = pairs.swaps[0]
        ids = swapped(view.trace.token_ids, first.position, first.token)
        state["other_text"] = view.model.text_of(ids)


def _same_model(view: View, given: Mapping[str, Any]) -> dict[str, Any]:
    return {"other_model": Given(view.model, "model"), "gate": None, **given}


def _warn_of_dropped_tokens(trace: Trace, text: str, model: str) -> None:
    dropped, n = trace.left_out, trace.n_tokens
    if dropped:
        first, last = ("first", "last") if trace.cut == "end" else ("last", "first")
        notice(
            f"{text} has {n + dropped:,} tokens, but the context of {model} holds {n:,}. Comparing "
            f"the {first} {n:,}; the {last} {dropped:,} are dropped."
        )
