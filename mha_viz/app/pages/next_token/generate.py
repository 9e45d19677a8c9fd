"""The Go on part: the text goes on, token by token, drawn by the model or given by the visitor."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st

from mha_viz.analysis import predictions
from mha_viz.analysis.generation import GREEDY, Sampling
from mha_viz.analysis.predictions import Step
from mha_viz.app.messages import escaped, notice, plain, problem
from mha_viz.app.pages.next_token.common import names, table_button
from mha_viz.app.view import View
from mha_viz.app.widgets.caption import caption, model_name
from mha_viz.app.widgets.chart import chart
from mha_viz.app.widgets.chips import Chip, chips
from mha_viz.app.widgets.choices import check_link, number_input, segmented_control
from mha_viz.app.widgets.stepper import steps
from mha_viz.app.work.progress import Reporter, results
from mha_viz.errors import HeadNotFound, MhaVizError
from mha_viz.figures.candidates import candidates_figure, height, told
from mha_viz.figures.scale import position

WAYS = ["greedy", "sample", "own continuation"]
MOST_NEW = 100
FIRST_NEW = 24
MOST_OWN = 400  # characters of a continuation that is given
CANDIDATES = 8
SHOWN = 72  # tokens so far that are drawn
WORTH_A_NUMBER = 0.02  # weights below have none
RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True, slots=True)
class Plan:
    """How the text goes on: drawn by `sampling`, or, without it, as `given`."""

    n: int
    sampling: Sampling | None
    given: tuple[int, ...] = ()

    @property
    def filters(self) -> bool:
        """Whether what is drawn from differs from what the model says."""
        return self.sampling is not None and self.sampling.temperature > 0


def show(view: View) -> None:
    """The choices, the tokens one after the other, and what can be done with them."""
    limit, T = view.model.config.n_positions, view.trace.n_tokens
    room = limit - T
    plan = _plan(view)
    if plan is None:
        return
    if room < 1:
        notice(
            f"The text fills all {limit:,} positions of {model_name(view)}: nothing can follow. "
            "Shorten it."
        )
        return
    if plan.n > room:
        notice(
            f"{model_name(view)} reads {limit:,} positions, and the text has {T:,} tokens: it goes "
            f"on by {room:,} in place of {plan.n:,}."
        )
    made = _made(view, plan, min(plan.n, room))
    if not made:
        return
    labels = [token.label for token in view.model.read([*view.trace.token_ids, *_ids(made)])]
    _score(made)
    steps("Token", "went", len(made), lambda at: _step(view, plan, made, labels, at))
    _take(view, made)


def _plan(view: View) -> Plan | None:
    """What the visitor asks for; None while there is nothing to do."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        way = segmented_control("The next token is", WAYS, WAYS[0], "go_on")
        if way != WAYS[2]:
            n = number_input("New tokens", 1, MOST_NEW, FIRST_NEW, "n_more")
            return Plan(n, GREEDY if way == WAYS[0] else _sampling(view))
        text = st.text_input(
            "How it goes on", key="own", bind="query-params", max_chars=MOST_OWN,
            placeholder="a space, and then  ring",
            help="Read as typed, right after the text: a space first, unless it continues a word",
        )  # fmt: skip
    return _own(view, text or "")


def _sampling(view: View) -> Sampling:
    temperature = _decimal("Temperature", 0.0, 5.0, 0.8, "temperature")
    top_k = number_input("Top-k (0: all)", 0, view.model.config.vocab_size, 40, "top_k")
    top_p = _decimal("Top-p", 0.05, 1.0, 0.95, "top_p")
    seed = number_input("Seed", 0, 999_999, 0, "draw")
    return Sampling(temperature, top_k, top_p, seed)


def _decimal(label: str, low: float, high: float, first: float, key: str) -> float:
    """A number that the link carries; what does not fit gets a word."""
    chosen = float(
        st.number_input(
            label, low, high, first, step=0.05, key=key, bind="query-params", width=130
        )
    )  # fmt: skip
    asked = str(st.session_state.get("link", {}).get(key, ""))
    try:
        taken = asked if math.isclose(float(asked), chosen) else f"{chosen:g}"
    except ValueError:
        taken = f"{chosen:g}"
    check_link(key, taken)
    return chosen


def _own(view: View, text: str) -> Plan | None:
    check_link("own", text, shown=text or "nothing")
    if not text:
        st.caption("Type how the text goes on; each of its tokens is then asked for in turn.")
        return None
    try:
        ids, _ = view.model.encode(text)
    except MhaVizError as error:
        problem(str(error))
        return None
    special = view.model.read(ids)[0].kind == "special"
    if not (special or text[0].isspace() or view.trace.text[-1:].isspace()):
        st.caption("It begins without a space, so it continues the last word of the text.")
    return Plan(len(ids), None, tuple(ids))


def _made(view: View, plan: Plan, n: int) -> list[Step]:
    model, ids = view.model, view.trace.token_ids
    k = min(CANDIDATES, model.config.vocab_size)

    def work(report: Reporter) -> Iterator[Step]:
        if plan.sampling is None:
            yield from predictions.score_continuation(
                model, ids, plan.given, n_candidates=k, on_progress=report
            )
        else:
            yield from predictions.continue_text(
                model, ids, n, sampling=plan.sampling, n_candidates=k, on_progress=report
            )

    made, _ = results(f"go on {view.trace_key} {plan}", work, total=n, what="tokens", lane="go on")
    return made


def _ids(made: Sequence[Step]) -> list[int]:
    return [step.token for step in made]


def _score(made: Sequence[Step]) -> None:
    """What the model makes of the whole continuation."""
    nats = sum(step.loss for step in made)
    first = sum(step.rank == 1 for step in made)
    several = "s" * (len(made) != 1)
    st.html(
        f'<div class="score"><span><b>{len(made)}</b> token{several}</span><span>probability of '
        f"all together <b>{_power(nats)}</b></span><span>loss <b>{nats / len(made):.3f}</b> nats a "
        f"token</span><span><b>{first}</b> of them the likeliest</span></div>"
    )


def _power(nats: float) -> str:
    """The exponential of -`nats` in three digits, times a power of ten where it is small."""
    if nats < math.log(1e3):
        return f"{math.exp(-nats):.3f}"
    digits = -nats / math.log(10)
    power = math.floor(digits)
    return f"{10 ** (digits - power):.2f} × 10⁻{str(-power).translate(RAISED)}"


def _step(view: View, plan: Plan, made: Sequence[Step], labels: Sequence[str], at: int) -> None:
    step = made[min(at, len(made) - 1)]
    caption(
        "How it goes on",
        "the new tokens, each on the probability that the model gave it; framed: the chosen step.",
    )
    first = made[0].position
    chips(
        [
            Chip(
                labels[one.position], told(one.probability).removeprefix("0"),
                one.probability**0.5, outlined=one is step,
                tooltip=f"position {one.position}, probability {one.probability:.4g}, "
                f"rank {one.rank:,}",
            )
            for one in made
        ],
        view.theme,
    )  # fmt: skip
    st.markdown(_sentence(plan, step, labels, first))
    left, right = st.columns([2, 3], gap="medium")
    with left:
        _candidates(view, plan, step)
    with right:
        _looks(view, step, labels)


def _sentence(plan: Plan, step: Step, labels: Sequence[str], first: int) -> str:
    how = "the likeliest" if step.rank == 1 else f"rank {step.rank:,}"
    found = (
        f"Position {step.position:,} becomes **{plain(labels[step.position])}**: probability "
        f"{_power(step.loss)}, {how}."
    )
    if plan.filters:
        after = float(step.p_sampling[step.ids.tolist().index(step.token)])
        found += (
            f" The filters left {step.n_possible:,} token{'s' * (step.n_possible != 1)}; it was "
            f"drawn with {after:.3f}."
        )
    text = f"all {first:,} tokens of the text" if first > 1 else "the one token of the text"
    if step.position == first:
        return f"{found} The step read {text} into the cache."
    return f"{found} The step read 1 token; {step.position - 1:,} were in the cache."


def _candidates(view: View, plan: Plan, step: Step) -> None:
    words = "the likeliest tokens, framed the one that was taken"
    if plan.filters:
        words += "; grey: what the model says, violet: after temperature, top-k and top-p"
    caption("What it was chosen from", f"{words}.")
    labels = names(view, step.ids.tolist())
    after = step.p_sampling.tolist() if plan.filters else None
    chart(
        candidates_figure(
            labels, step.p_model.tolist(), after, step.ids.tolist().index(step.token), view.theme,
            sizes=view.sizes,
        ),
        key="candidates",
        height=height(CANDIDATES + 1),  # whatever the step, so that nothing below moves
        alt="; ".join(
            f"{label} {before:.3f}" + (f", drawn from {now:.3f}" if plan.filters else "")
            for label, before, now in zip(labels, step.p_model, step.p_sampling, strict=True)
        ),
    )  # fmt: skip


def _looks(view: View, step: Step, labels: Sequence[str]) -> None:
    """Where the chosen head of the newest token looked."""
    asks = step.position - 1
    try:
        weights = predictions.attention_row(view.model, step, view.layer, view.head)
    except HeadNotFound as error:
        problem(str(error))
        return
    first = max(0, step.position - SHOWN)
    left_out = (
        f" Positions 0 to {first - 1:,} hold {weights[:first].sum():.2f} and are not drawn."
        if first else ""
    )  # fmt: skip
    caption(
        f"Where {view.at.label} looked",
        f"how much {escaped(labels[asks])} ({asks:,}), framed, the newest token then, looks at "
        f"each so far: its query against the keys in the cache; adds up to 1.{left_out}",
    )
    places = position(weights[None], view.scale, first_query=asks)[0]
    chips(
        [
            Chip(
                labels[i],
                f"{weights[i]:.2f}".removeprefix("0") if weights[i] >= WORTH_A_NUMBER else "",
                float(places[i]) if weights[i] >= WORTH_A_NUMBER else None,
                outlined=i == asks, dimmed=i == 0 and view.dim_sink,
                tooltip=f"position {i}, weight {weights[i]:.3f}",
            )
            for i in range(first, step.position)
        ],
        view.theme,
    )  # fmt: skip
    best = np.argsort(-weights, kind="stable")[:3].tolist()
    said = ", ".join(f"{escaped(labels[i])} ({i:,}) {told(weights[i])}" for i in best)
    st.html(f'<div class="caption">It looks most at <b>{said}</b>.</div>')


def _take(view: View, made: Sequence[Step]) -> None:
    """The text with its continuation, and the numbers."""
    with st.container(horizontal=True):
        pieces = view.model.read(_ids(made))
        whole = view.trace.text + b"".join(p.bytes for p in pieces).decode("utf-8", "replace")
        st.button(
            "Use as text", on_click=_use, args=(whole,), key="use_as_text",
            icon=":material/edit_note:",
            help="Text and continuation go into the text box; it is cut into tokens anew",
        )  # fmt: skip
        table_button("continuation.csv", lambda: _candidates_table(view, made), "Steps as CSV")
        if view.head in view.model.config.kept_heads(view.layer):
            table_button(
                f"looks_{view.at.key}.csv", lambda: _looks_table(view, made), "Attention as CSV"
            )


def _use(text: str) -> None:
    st.session_state["text"] = text
    st.session_state["went"] = 1  # of what follows that text


def _candidates_table(view: View, made: Sequence[Step]) -> tuple[list[str], list[list[object]]]:
    header = ["position", "candidate", "id", "taken", "p", "p drawn from", "rank of the taken"]
    rows: list[list[object]] = []
    for step in made:
        labels = names(view, step.ids.tolist())
        for token, label, before, after in zip(
            step.ids.tolist(), labels, step.p_model, step.p_sampling, strict=True
        ):
            rows.append(
                [step.position, label, token, int(token == step.token), float(before),
                 float(after), step.rank]
            )  # fmt: skip
    return header, rows


def _looks_table(view: View, made: Sequence[Step]) -> tuple[list[str], list[list[object]]]:
    """A row a step: the position that it made, and how much the one before looked at each."""
    header = ["position", *map(str, range(made[-1].position))]
    rows: list[list[object]] = []
    for step in made:
        weights = predictions.attention_row(view.model, step, view.layer, view.head)
        rows.append([step.position, *map(float, weights)])
    return header, rows
