"""The continuation that the Generate tab adds to the text: how it is chosen, and its steps."""

from collections.abc import Iterator
from dataclasses import dataclass

import streamlit as st

from mha_viz.analysis.generation import GREEDY, Sampling
from mha_viz.analysis.predictions import Step, continue_text, score_continuation
from mha_viz.app.messages import notice, problem
from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.caption import model_name
from mha_viz.app.widgets.choices import check_link, number_input, segmented_control
from mha_viz.app.work.progress import Reporter, results
from mha_viz.errors import MhaVizError

MODES = ["greedy", "sample", "your own"]
MAX_NEW, DEFAULT_NEW = 100, 24  # new tokens
MAX_CHARACTERS = 400  # of the user's own continuation
N_CANDIDATES = 8


@dataclass(frozen=True, slots=True)
class Continuation:
    """What to add to the text: `n` sampled tokens or, without `sampling`, the tokens `given`."""

    n: int
    sampling: Sampling | None
    given: tuple[int, ...] = ()

    @property
    def is_filtered(self) -> bool:
        """Whether tokens are drawn from probabilities other than the model's."""
        return self.sampling is not None and self.sampling.temperature > 0


def choose_continuation(view: View) -> Continuation | None:
    """What the user asks for; None while their own continuation is missing or unusable."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        mode = segmented_control("Continuation", MODES, MODES[0], "go_on")
        if mode != MODES[2]:
            n = number_input("New tokens", 1, MAX_NEW, DEFAULT_NEW, "n_more")
            return Continuation(n, GREEDY if mode == MODES[0] else _sampling(view))
        text = explained.text_input(
            "Your continuation",
            key="own",
            bind="query-params",
            max_chars=MAX_CHARACTERS,
            placeholder=" ring and a crown",
            help="Added to the text as typed. Start with a space unless it continues a word.",
        )
    return _own(view, text or "")


def _sampling(view: View) -> Sampling:
    temperature = _decimal_input("Temperature", 0.0, 5.0, 0.8, "temperature")
    top_k = number_input("Top-k (0 = all)", 0, view.model.config.vocab_size, 40, "top_k")
    top_p = _decimal_input("Top-p", 0.05, 1.0, 0.95, "top_p")
    seed = number_input("Seed", 0, 999_999, 0, "draw")
    return Sampling(temperature, top_k, top_p, seed)


def _decimal_input(label: str, low: float, high: float, first: float, key: str) -> float:
    """A number that the link carries; warns if the link's value is not available."""
    value = float(
        explained.number_input(
            label, low, high, first, 0.05, key=key, bind="query-params", width=130
        )
    )
    check_link(key, str(value))
    return value


def _own(view: View, text: str) -> Continuation | None:
    check_link("own", text, shown=text or "nothing")
    if not text:
        explained.note("Type a continuation; the model then scores its tokens one by one.")
        return None
    try:
        ids, _ = view.model.encode(text)
    except MhaVizError as error:
        problem(str(error))
        return None
    special = view.model.read(ids)[0].kind == "special"
    if not (special or text[0].isspace() or view.trace.text[-1:].isspace()):
        explained.note("Your continuation starts without a space, so it continues the last word.")
    return Continuation(len(ids), None, tuple(ids))


def n_that_fit(view: View, continuation: Continuation) -> int:
    """How many of the new tokens fit into the model's context, with a message if not all do."""
    limit, T = view.model.config.n_positions, view.trace.n_tokens
    n = min(continuation.n, limit - T)
    if n < 1:
        notice(
            f"The text fills all {limit:,} positions of {model_name(view)}, so there is no room "
            "for new tokens. Shorten the text."
        )
    elif n < continuation.n:
        notice(
            f"The context of {model_name(view)} holds {limit:,} tokens and the text has {T:,}, so "
            f"only {n:,} of {continuation.n:,} new tokens fit."
        )
    return max(n, 0)


def computed_steps(view: View, continuation: Continuation, n: int) -> list[Step]:
    """The steps computed so far."""
    model, ids = view.model, view.trace.token_ids
    k = min(N_CANDIDATES, model.config.vocab_size)

    def work(report: Reporter) -> Iterator[Step]:
        if continuation.sampling is None:
            given = continuation.given
            return score_continuation(model, ids, given, n_candidates=k, on_progress=report)
        sampling = continuation.sampling
        return continue_text(model, ids, n, sampling=sampling, n_candidates=k, on_progress=report)

    name = f"continuation {view.trace_key} {continuation}"
    made, _ = results(name, work, total=n, what="tokens", lane="continuation")
    return made
