"""The Importance part: what each head is worth, exactly and by estimates, and how these agree."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import streamlit as st

from mha_viz import pruning
from mha_viz.app.messages import problem
from mha_viz.app.view import View
from mha_viz.app.widgets import head_board
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.chart import chart
from mha_viz.app.widgets.choices import segmented_control
from mha_viz.app.widgets.download_buttons import download_table
from mha_viz.app.widgets.reference_text import Reference
from mha_viz.app.widgets.tables import table
from mha_viz.app.work.progress import Reporter, results
from mha_viz.errors import MhaVizError
from mha_viz.export import head_table
from mha_viz.figures.scatter import rank_scatter
from mha_viz.head import Head
from mha_viz.pruning import Estimate, Method, Scores

MEASURES = ["exact", "gradient", "values", "confidence"]
WORDS = {
    "exact": "Each head removed alone, everything else run again: the loss without it minus the "
    "loss with it, in nats a token. Not an estimate.",
    "gradient": "An estimate: |dL / dg| at g = 1, where g scales the head; the absolute value per "
    "text first, then the mean (Michel et al. 2019). One pass there and one back.",
    "values": "An estimate: how much the head moves, the mean of its weights times the norms of "
    "what they carry (Kobayashi et al. 2020).",
    "confidence": "An estimate: the mean of the largest weight of a row (Voita et al. 2019).",
}
UNITS = {"exact": "nats", "gradient": "nats", "values": "", "confidence": ""}
SOURCES = ["this text", "reference text"]


@dataclass(frozen=True, slots=True)
class Choice:
    """What is measured, on what."""

    measure: str
    source: str
    method: Method


def choose(method: Method) -> Choice:
    """The measure and the texts."""
    with st.container(horizontal=True, vertical_alignment="center"):
        measure = segmented_control("Measure", MEASURES, "exact", "score", show_label=False)
        source = segmented_control("On", SOURCES, SOURCES[0], "score_on", show_label=False)
    st.caption(WORDS[measure])
    return Choice(measure, source, method)


def measured(view: View, choice: Choice, reference: Reference) -> Estimate | None:
    """The scores over the texts read so far; None while there are none."""
    try:
        texts = _texts(view, choice, reference)
    except MhaVizError as error:
        problem(str(error))
        return None
    found, _ = results(
        _name(view, choice, reference),
        lambda report: _scores(view, choice, texts, reference, report),
        total=len(texts), what=f"texts, {choice.measure}", cost=_cost(view, choice, texts),
        lane=f"importance {choice.measure}",
    )  # fmt: skip
    return pruning.estimate(found) if found else None


def _texts(view: View, choice: Choice, reference: Reference) -> list[list[int]]:
    limit = view.model.config.n_positions
    if choice.source == SOURCES[0]:
        return pruning.chunks(view.model, view.trace.token_ids, limit)
    return pruning.chunks(view.model, reference.selection, limit)


def _name(view: View, choice: Choice, reference: Reference) -> str:
    of = view.trace_key if choice.source == SOURCES[0] else reference.key
    way: str = choice.method if choice.measure == "exact" else ""
    if way not in ("", "zero"):
        way = f"{way} {reference.key}"  # what stands in for a head is made from it
    return f"importance {choice.measure} {way} {of} {view.about.weights_hash}"


def _scores(
    view: View, choice: Choice, texts: list[list[int]], reference: Reference, report: Reporter
) -> Iterator[Scores]:
    model = view.model
    for ids in texts:
        if choice.measure == "exact":
            filling = pruning.make_replacement(model, choice.method, len(ids), reference.selection)
            yield pruning.ablate_each_head(model, ids, method=filling, on_progress=report)
        elif choice.measure == "gradient":
            yield pruning.gradient_importance(model, ids)
        elif choice.measure == "values":
            yield pruning.value_importance(model, ids)
        else:
            yield pruning.confidence(model, ids)


def _cost(view: View, choice: Choice, texts: list[list[int]]) -> str:
    """What it takes, where it takes long; empty where it is done in a moment."""
    n = len(pruning.all_heads(view.model.config))
    work = sum(map(len, texts)) * n * view.about.n_parameters
    if choice.measure != "exact" or work < 1e12:
        return ""
    return f"Exact importance runs the model once for each of {n} heads and {len(texts)} texts."


def ranking(view: View, choice: Choice, found: Estimate) -> None:
    """All heads by score, with intervals, and a button that switches off those least missed."""
    order = pruning.removal_order(found.mean)
    caption(
        "Heads by importance",
        f"{choice.measure}, on {choice.source}"
        + (f", mean of {found.n} texts with its 95 % interval." if found.n > 1 else "."),
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        n = st.number_input(
            "How many", 1, len(order), min(3, len(order)), key="least", bind="query-params",
            width=120,
        )  # fmt: skip
        st.button(
            f"Off: the {n} least missed", on_click=head_board.switch, args=(tuple(order[: int(n)]),)
        )
    rows = [
        [Head(i, h).label, float(found.mean[i, h]), float(found.low[i, h]), float(found.high[i, h])]
        for i, h in reversed(order)
    ]
    header = ["head", "score", "low", "high"]
    if found.n < 2:
        rows, header = [row[:2] for row in rows], header[:2]
    table(header, rows, height=260)
    download_table("importance.csv", header, rows)


def agreement(view: View, choice: Choice, exact: Estimate, other: Estimate, name: str) -> None:
    """An estimate against the exact sweep, a dot a head, and their rank correlation."""
    rho = pruning.rank_correlation(exact.mean, other.mean)
    caption(
        f"Exact against {name}",
        f"a dot is a head, on {choice.source}; rank correlation (Spearman) {rho:.2f}."
        if np.isfinite(rho)
        else f"a dot is a head, on {choice.source}; too few heads to correlate.",
    )
    chart(
        rank_scatter(
            exact.mean, other.mean, view.theme, chosen=(view.layer, view.head),
            names=("loss without the head (nats)", f"{name} estimate"), sizes=view.sizes,
        ),
        key="agreement", height=340,
        table=lambda: head_table(["exact", name], exact.mean, other.mean),
        alt=f"Rank correlation of {name} with the exact sweep: {rho:.2f}.",
    )  # fmt: skip


def show(view: View, choice: Choice, reference: Reference) -> Scores | None:
    """The whole part; returns what colours the board."""
    other = choice.measure if choice.measure != "exact" else "gradient"
    found = {
        measure: measured(view, Choice(measure, choice.source, choice.method), reference)
        for measure in ("exact", other)
    }
    mine = found[choice.measure]
    if mine is None:
        return None
    ranking(view, choice, mine)
    if (exact := found["exact"]) is not None and (estimate := found[other]) is not None:
        agreement(view, choice, exact, estimate, other)
    return mine.mean
