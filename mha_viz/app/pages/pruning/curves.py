"""The Curves part: how many heads can be removed, in which order, measured on held-out text."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st

from mha_viz import pruning
from mha_viz.app.pages.pruning.ablation_type import Ablation
from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.chart import chart
from mha_viz.app.widgets.choices import check_link, number_input, segmented_control
from mha_viz.app.widgets.download_buttons import download_table
from mha_viz.app.widgets.reference_text import Reference
from mha_viz.app.widgets.tables import table
from mha_viz.app.work.progress import Reporter, leave, results
from mha_viz.figures.pruning_curves import Curve, pruning_curves
from mha_viz.pruning import STRATEGIES, Point, Strategy, make_replacement

DEFAULT_ORDERS = ["exact", "gradient", "random"]
N_SHUFFLES = 10
MOST_CHUNK = 512  # tokens
WIDE = 4000  # layers times d_model, from which even the quick orders take minutes
EXPLANATIONS: dict[str, str] = {
    "exact": "least important first by exact ablation of each head, measured once",
    "most important first": "most important first by the same measure",
    "gradient": "least important first by the gradient, measured once (Michel et al. 2019)",
    "gradient, recomputed": "least important first by the gradient, recomputed after each head",
    "greedy": "at each step, the head whose removal increases the loss least",
    "values": "least important first by the norm of the value contributions",
    "confidence": "least important first by the largest weights (Voita et al. 2019)",
    "random": f"{N_SHUFFLES} shuffles; the band spans all of them, the line is their mean",
}
PUBLISHED = (
    "Published results: Voita et al. 2019 pruned 38 of 48 encoder heads of a translation model for "
    "0.15 BLEU, with gates trained for it; Michel et al. 2019 removed about a fifth of the heads "
    "of a translation model, and two fifths of BERT's, before the scores dropped noticeably. "
    "Models, tasks and metrics differ, so do not compare these results with the loss above."
)
Curves = dict[Strategy, list[list[Point]]]  # the curves of each order, one per shuffle


@dataclass(frozen=True, slots=True)
class ShufflePoint:
    """A point of one curve; only the random order has several shuffles."""

    shuffle: int
    point: Point


@dataclass(frozen=True, slots=True)
class Settings:
    """Which orders are measured, on how many texts, and how many heads are removed per step."""

    orders: tuple[Strategy, ...]
    n_texts: int
    every: int
    budget: float  # share of the full model's loss


def show(view: View, ablation: Ablation) -> None:
    """The curves of the selected orders as measured so far, and how many heads can be removed."""
    settings = select_settings(view, ablation.reference)
    curves = _measured_curves(view, settings, ablation)
    if curves:
        _chart(view, curves, settings)
        _table(curves, settings)
        explained.note(PUBLISHED)


def select_settings(view: View, reference: Reference) -> Settings:
    """The inputs over the curves."""
    n_heads = len(pruning.all_heads(view.model.config))
    selected = explained.pills(
        "Orders of removal",
        list(STRATEGIES),
        selection_mode="multi",
        wrap=True,
        default=DEFAULT_ORDERS,
        key="orders",
        bind="query-params",
    )
    most_texts = min(len(reference.selection), len(reference.evaluation))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        n_texts = number_input(
            "Texts",
            1,
            most_texts,
            3,
            "curve_texts",
            help="This many selection texts decide the order, and as many evaluation texts "
            "measure the loss",
        )
        every = number_input("Heads per step", 1, n_heads, max(1, n_heads // 36), "curve_every")
        budget = explained.number_input(
            "Loss budget, %",
            0.0,
            100.0,
            1.0,
            0.5,
            key="budget",
            bind="query-params",
            width=170,
            help="How far the loss may rise above the full model's",
        )
    check_link("orders", selected)
    check_link("budget", str(budget))
    orders = tuple(strategy for strategy in STRATEGIES if strategy in selected)
    return Settings(orders, int(n_texts), int(every), float(budget) / 100)


def _measured_curves(view: View, settings: Settings, ablation: Ablation) -> Curves:
    """The points of each order so far; drawn as they come."""
    if not settings.orders:
        st.info("Select at least one order of removal.")
    for strategy in set(STRATEGIES) - set(settings.orders):
        leave(f"curve {strategy}")
    curves: Curves = {}
    for strategy in settings.orders:
        by_shuffle: dict[int, list[Point]] = {}
        for found in _points(view, strategy, settings, ablation):
            by_shuffle.setdefault(found.shuffle, []).append(found.point)
        if by_shuffle:
            curves[strategy] = list(by_shuffle.values())
    return curves


def _points(
    view: View, strategy: Strategy, settings: Settings, ablation: Ablation
) -> list[ShufflePoint]:
    """The results of the job that measures one order."""
    model, reference, method = view.model, ablation.reference, ablation.method
    n_texts, every = settings.n_texts, settings.every
    n_shuffles = N_SHUFFLES if strategy == "random" else 1

    def work(report: Reporter) -> Iterator[ShufflePoint]:
        length = min(model.config.n_positions, MOST_CHUNK)
        selection = pruning.chunks(model, reference.selection[:n_texts], length)
        evaluation = pruning.chunks(model, reference.evaluation[:n_texts], length)
        longest = max(map(len, (*selection, *evaluation)))
        replacement = make_replacement(model, method, longest, reference.selection)
        for shuffle in range(n_shuffles):
            order = pruning.order(
                model,
                selection,
                strategy,
                replacement=replacement,
                seed=shuffle,
                on_progress=report,
            )
            for point in pruning.curve(model, evaluation, order, method=replacement, every=every):
                yield ShufflePoint(shuffle, point)

    steps = 1 + -(-len(pruning.all_heads(model.config)) // every)
    weights = view.about.weights_hash
    points, _ = results(
        f"curve {strategy} {weights} {method} {n_texts} {every} {reference.key}",
        work,
        total=steps * n_shuffles,
        what=f"points, {strategy}",
        cost=_cost(view, strategy, settings),
        lane=f"curve {strategy}",
    )
    return points


def _cost(view: View, strategy: Strategy, settings: Settings) -> str:
    """How much work a slow measurement takes; "" if it is quick."""
    config, n_texts = view.model.config, settings.n_texts
    n_heads = len(pruning.all_heads(config))
    if strategy == "greedy" and n_heads > 30:
        passes = pruning.greedy_passes(config, n_texts)
        return f"The greedy order takes {passes:,} forward passes."
    if config.n_layers * config.d_model > WIDE:
        return (
            f"{strategy}: {n_heads} heads on {n_texts} texts take minutes with a model of this "
            "size."
        )
    return ""


def _chart(view: View, curves: Curves, settings: Settings) -> None:
    """The loss, or the agreement with the full model, against the number of heads removed."""
    metric = segmented_control(
        "Metric", ["loss", "agreement"], "loss", "curve_what", show_label=False
    )
    budget = f"{settings.budget:.1%}"
    full_loss = budget_loss = None
    if metric == "loss":
        full_loss = next(iter(curves.values()))[0][0].loss
        budget_loss = full_loss * (1 + settings.budget)
        text = (
            "Mean loss in nats per token, on held-out evaluation texts. Each line is an order of "
            f"removal. Dashed: the full model, and {budget} above it."
        )
    else:
        text = (
            "Top-1 agreement, on held-out evaluation texts: share of positions where the most "
            "likely token is the same as the full model's. Each line is an order of removal."
        )
    caption("Heads removed", text)
    figure = pruning_curves(
        [_line(strategy, points, metric) for strategy, points in curves.items()],
        view.theme,
        uniform=full_loss,
        budget=budget_loss,
        title=metric,
        sizes=view.sizes,
    )
    results_in_words = (
        f"{strategy}: {pruning.heads_within(points[0], settings.budget)} heads within {budget}"
        for strategy, points in curves.items()
    )
    alt = f"{metric.capitalize()} against heads removed. {'; '.join(results_in_words)}."
    chart(figure, key="curves", height=360, alt=alt)


def _line(strategy: Strategy, curves: Sequence[Sequence[Point]], metric: str) -> Curve:
    # While points come in, the last shuffle is shorter than the others and is not drawn.
    complete = [curve for curve in curves if len(curve) == max(map(len, curves))]
    rows = np.array(
        [[p.loss if metric == "loss" else p.agreement for p in curve] for curve in complete]
    )
    return Curve(
        name=strategy,
        x=[point.n_removed for point in complete[0]],
        y=rows.mean(axis=0).tolist(),
        low=rows.min(axis=0).tolist() if len(complete) > 1 else [],
        high=rows.max(axis=0).tolist() if len(complete) > 1 else [],
    )


def _table(curves: Curves, settings: Settings) -> None:
    """How many heads each order removes within the budget, and all points as a file."""
    rows: list[list[object]] = []
    for strategy, points in curves.items():
        within = [pruning.heads_within(curve, settings.budget) for curve in points]
        n = f"{min(within)} to {max(within)}" if len(within) > 1 else str(within[0])
        rows.append([strategy, EXPLANATIONS[strategy], n])
    table(["order", "removes", f"heads removed within {settings.budget:.1%}"], rows)
    csv_rows = [
        [strategy, shuffle, p.n_removed, p.loss, p.agreement, " ".join(h.key for h in p.removed)]
        for strategy, points in curves.items()
        for shuffle, curve in enumerate(points)
        for p in curve
    ]
    header = ["order", "shuffle", "heads removed", "loss", "agreement", "removed in this step"]
    download_table("curves.csv", header, csv_rows)
