"""The Generate tab: the text continued token by token, by the model or by the user."""

import math
from collections.abc import Sequence

import numpy as np
import streamlit as st

from mha_viz.analysis.predictions import Step, attention_row
from mha_viz.app.messages import escaped, plain, problem
from mha_viz.app.pages.next_token.continuation import (
    N_CANDIDATES,
    Continuation,
    choose_continuation,
    computed_steps,
    n_that_fit,
)
from mha_viz.app.pages.next_token.token_labels import labels
from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.caption import caption, metrics
from mha_viz.app.widgets.chart import chart
from mha_viz.app.widgets.chips import Chip, chips
from mha_viz.app.widgets.download_buttons import download_csv
from mha_viz.app.widgets.recipes import recipe
from mha_viz.app.widgets.stepper import steps
from mha_viz.errors import HeadNotFound
from mha_viz.export import Drawn, Given, rows_data, table_csv
from mha_viz.figures.candidates import candidates_figure, height
from mha_viz.figures.scale import position
from mha_viz.figures.text import format_probability
from mha_viz.figures.theme import TextSizes, Theme
from mha_viz.model import Model

MAX_KEYS = 72  # tokens that are drawn with their attention weights
MIN_WEIGHT = 0.02  # tokens with a smaller weight have no colour and no number
CONTINUED = (
    "list(continue_text(model, trace.token_ids, i + 1, sampling=sampling, "
    "n_candidates=min(N_CANDIDATES, model.config.vocab_size)))[i]"
)
SCORED = (
    "list(score_continuation(model, trace.token_ids, given, "
    "n_candidates=min(N_CANDIDATES, model.config.vocab_size)))[i]"
)
SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def show(view: View) -> None:
    """The choices, each new token with its candidates and attention, and the downloads."""
    continuation = choose_continuation(view)
    if continuation is None:
        return
    n = n_that_fit(view, continuation)
    made = computed_steps(view, continuation, n) if n else []
    if not made:
        return
    tokens = labels(view.model, [*view.trace.token_ids, *(step.token for step in made)])
    _metrics(made)
    steps("Token", "went", len(made), lambda i: _step(view, continuation, made, tokens, i))
    _actions(view, made)


def _metrics(made: Sequence[Step]) -> None:
    """How probable the whole continuation is."""
    n, nats = len(made), sum(step.loss for step in made)
    metrics(
        f"<b>{n}</b> token{'s' * (n != 1)}",
        f"joint probability <b>{_scientific(nats)}</b>",
        f"mean loss <b>{nats / n:.3f}</b> nats per token",
        f"top-1 accuracy <b>{sum(step.rank == 1 for step in made)}</b> of {n}",
    )


def _scientific(nats: float) -> str:
    """e^−nats in three digits, with a power of ten if it is small."""
    if nats < math.log(1e3):
        return f"{math.exp(-nats):.3f}"
    exponent = -nats / math.log(10)
    power = math.floor(exponent)
    return f"{10 ** (exponent - power):.2f} × 10⁻{str(-power).translate(SUPERSCRIPT)}"


def _step(
    view: View, continuation: Continuation, made: Sequence[Step], tokens: Sequence[str], i: int
) -> None:
    """The new tokens, and how the selected one was chosen."""
    step = made[min(i, len(made) - 1)]
    caption(
        "New tokens",
        "Below each: the probability p that the model gave it. Colour: √ p. Outlined: the selected "
        "step.",
    )
    chips([_new_token(other, tokens, selected=other is step) for other in made], view.theme)
    explained.paragraph(_summary(continuation, step, tokens, n_text=made[0].position))
    left, right = st.columns([2, 3], gap="medium")
    with left:
        _candidates(view, continuation, step, i)
    with right:
        _attention(view, step, tokens)


def _new_token(step: Step, tokens: Sequence[str], *, selected: bool) -> Chip:
    p = step.probability
    return Chip(
        tokens[step.position],
        format_probability(p).removeprefix("0"),
        p**0.5,
        outlined=selected,
        tooltip=f"position {step.position}, probability {p:.4g}, rank {step.rank:,}",
    )


def _summary(continuation: Continuation, step: Step, tokens: Sequence[str], *, n_text: int) -> str:
    """How the step's token was chosen and what was computed; `n_text` tokens came before all."""
    rank = "the most likely token" if step.rank == 1 else f"rank {step.rank:,}"
    token = plain(tokens[step.position])
    sentences = [
        f"Position {step.position:,}: **{token}**, probability {_scientific(step.loss)}, {rank}."
    ]
    if continuation.is_filtered:
        p, n = float(step.p_sampling[_taken(step)]), step.n_possible
        sentences.append(
            f"After temperature, top-k and top-p, {n:,} candidate{'s' * (n != 1)} remained; this "
            f"token was drawn with probability {p:.3f}."
        )
    if step.position == n_text:
        text = f"all {n_text:,} tokens" if n_text > 1 else "the only token"
        sentences.append(f"This step computed {text} of the text and filled the cache.")
    else:
        n_cached = step.position - 1
        sentences.append(f"This step computed 1 token and read {n_cached:,} from the cache.")
    return " ".join(sentences)


def _taken(step: Step) -> int:
    """The row of the token that was taken, among the candidates."""
    return int(np.flatnonzero(step.ids == step.token)[0])


def _candidates(view: View, continuation: Continuation, step: Step, i: int) -> None:
    """The most likely tokens, with their probabilities before and after the filters."""
    filters = " Grey: the model. Violet: after temperature, top-k and top-p."
    caption(
        "Candidates",
        "The most likely tokens and their probabilities. Outlined: the token that was taken."
        f"{filters if continuation.is_filtered else ''}",
    )
    names = labels(view.model, step.ids.tolist())
    before = step.p_model.tolist()
    after = step.p_sampling.tolist() if continuation.is_filtered else None
    sampling, given = continuation.sampling, continuation.given
    code = SCORED if sampling is None else CONTINUED
    chart(
        recipe(
            view,
            _draw_candidates,
            i=min(i, continuation.n - 1),
            sampling=sampling,
            given=list(given),
            step=Given(step, code, Continuation.__module__),
            is_filtered=continuation.is_filtered,
        ),
        name="Candidates",
        key="candidates",
        height=height(N_CANDIDATES + 1),  # the same for every step, so that nothing below moves
        alt="; ".join(map(_read_out, names, before, after or [None] * len(names))),
    )


def _draw_candidates(
    model: Model, step: Step, is_filtered: bool, theme: Theme, sizes: TextSizes
) -> Drawn:
    before, after = step.p_model.tolist(), step.p_sampling.tolist() if is_filtered else None
    names, taken = labels(model, step.ids.tolist()), _taken(step)
    figure = candidates_figure(names, before, after, taken, theme, sizes=sizes)
    data = rows_data(*_candidates_table(model, [step]))
    return figure, data


def _read_out(name: str, before: float, after: float | None) -> str:
    if after is None:
        return f"{name} {before:.3f}"
    filtered = f"{after:.3f} after the filters" if after else "filtered out"
    return f"{name} {before:.3f}, {filtered}"


def _attention(view: View, step: Step, tokens: Sequence[str]) -> None:
    """What the newest token at this step looks at, in the selected head."""
    try:
        weights = attention_row(view.model, step, view.layer, view.head)
    except HeadNotFound as error:
        problem(str(error))
        return
    query = step.position - 1
    first = max(0, step.position - MAX_KEYS)
    hidden = (
        f" Positions 0 to {first - 1:,} (total weight {weights[:first].sum():.2f}) are not drawn."
        if first
        else ""
    )
    caption(
        f"Where {view.at.label} looked",
        f"How much {escaped(tokens[query])} ({query:,}, outlined), the newest token at this step, "
        "looks at each token so far: its query against the cached keys. The weights add up to 1."
        f"{hidden}",
    )
    colours = position(weights[None], view.scale, first_query=query)[0]
    chips(
        [
            Chip(
                tokens[key],
                f"{weights[key]:.2f}".removeprefix("0") if weights[key] >= MIN_WEIGHT else "",
                float(colours[key]) if weights[key] >= MIN_WEIGHT else None,
                outlined=key == query,
                dimmed=key == 0 and view.dim_sink,
                tooltip=f"position {key}, weight {weights[key]:.3f}",
            )
            for key in range(first, step.position)
        ],
        view.theme,
    )
    strongest = np.argsort(-weights, kind="stable")[:3].tolist()
    keys = ", ".join(
        f"{escaped(tokens[key])} ({key:,}) {format_probability(weights[key])}" for key in strongest
    )
    explained.html(f'<div class="caption">It looks most at <b>{keys}</b>.</div>')


def _actions(view: View, made: Sequence[Step]) -> None:
    """Buttons that continue with the longer text, and that download what was computed."""
    new = view.model.read([step.token for step in made])
    text = view.trace.text + view.model.text_of([t.id for t in new])
    with st.container(horizontal=True):
        st.button(
            "Use as text",
            on_click=_use_as_text,
            args=(text,),
            key="use_as_text",
            icon=":material/edit_note:",
            help="Puts text and continuation into the text box, where they are tokenised again",
        )
        download_csv(
            "Download steps (CSV)",
            "continuation.csv",
            lambda origin: table_csv(*_candidates_table(view.model, made), origin),
        )
        if view.head in view.model.config.kept_heads(view.layer):
            download_csv(
                "Download attention (CSV)",
                f"attention_{view.at.key}.csv",
                lambda origin: table_csv(*_attention_table(view, made), origin),
            )


def _use_as_text(text: str) -> None:
    st.session_state["text"] = text
    st.session_state["went"] = 1  # the first step after the new text


def _candidates_table(model: Model, made: Sequence[Step]) -> tuple[list[str], list[list[object]]]:
    header = ["position", "candidate", "id", "taken", "p", "p after filters", "rank of taken"]
    rows: list[list[object]] = [
        [
            step.position,
            name,
            token,
            int(token == step.token),
            float(p),
            float(p_sampling),
            step.rank,
        ]
        for step in made
        for name, token, p, p_sampling in zip(
            labels(model, step.ids.tolist()),
            step.ids.tolist(),
            step.p_model,
            step.p_sampling,
            strict=True,
        )
    ]
    return header, rows


def _attention_table(view: View, made: Sequence[Step]) -> tuple[list[str], list[list[object]]]:
    """For each new position, the weights of the token before it, which predicted it."""
    header = ["position", *map(str, range(made[-1].position))]
    rows: list[list[object]] = [
        [step.position, *map(float, attention_row(view.model, step, view.layer, view.head))]
        for step in made
    ]
    return header, rows
