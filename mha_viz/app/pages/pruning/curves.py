"""The Curves part: how many heads can be removed, in which order, measured on held-out text."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st

from mha_viz import pruning
from mha_viz.analysis.reference_texts import evaluation_texts as evaluation_texts  # for scripts
from mha_viz.analysis.reference_texts import selection_texts as selection_texts
from mha_viz.app.pages.pruning.ablation_type import Ablation
from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.chart import chart, record_settings
from mha_viz.app.widgets.choices import check_link, number_input, segmented_control
from mha_viz.app.widgets.download_buttons import download_table
from mha_viz.app.widgets.recipes import recipe
from mha_viz.app.widgets.reference_text import Reference
from mha_viz.app.widgets.tables import table
from mha_viz.app.work.progress import Reporter, leave, results
from mha_viz.callbacks import OnProgress
from mha_viz.export import Drawn, Given, Table, rows_data
from mha_viz.figures.pruning_curves import Curve, pruning_curves
from mha_viz.figures.theme import TextSizes, Theme
from mha_viz.head import Head
from mha_viz.model import Model
from mha_viz.pruning import STRATEGIES, Method, Point, Strategy, draws
from mha_viz.pruning.tasks import SEGMENT

DEFAULT_ORDERS = ["exact", "gradient", "random"]
CURVES = (
    "{order: _by_shuffle(_measure(model, order, method, n_texts, every, selection_texts(), "
    "evaluation_texts())) for order in orders}"
)
N_SHUFFLES = 10
N_DRAWS = 5  # of resampled values; the random order has one for each shuffle
REPETITION_SEEDS = range(2)  # of repeated random tokens, measured at each point
METRICS = {"loss": "loss", "agreement": "agreement", "repeated tokens": "repetition_loss"}
MAX_CHUNK = 512  # tokens
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
    "Published results: Voita et al. 2019 pruned 38 of 48 encoder heads of a translation model at "
    "a cost of 0.15 BLEU, with gates trained for it; Michel et al. 2019 removed about a fifth of "
    "the heads of a translation model, and two fifths of BERT's, before the scores dropped "
    "noticeably. Models, tasks and metrics differ, so do not compare these results with the loss "
    "above."
)
Curves = dict[Strategy, list[list[Point]]]  # of each order, one per shuffle or draw


@dataclass(frozen=True, slots=True)
class ShufflePoint:
    """A point of one curve; several are of a random order, or of resampled values."""

    shuffle: int  # or the number of the draw
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
        _chart(view, curves, settings, ablation)
        _table(curves, settings, ablation)
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
            help="How many selection texts are used to order the heads; the loss is measured on "
            "the same number of evaluation texts",
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
        if by_shuffle := _by_shuffle(_points(view, strategy, settings, ablation)):
            curves[strategy] = by_shuffle
    return curves


def _by_shuffle(points: Iterable[ShufflePoint]) -> list[list[Point]]:
    by_shuffle: dict[int, list[Point]] = {}
    for found in points:
        by_shuffle.setdefault(found.shuffle, []).append(found.point)
    return list(by_shuffle.values())


def _points(
    view: View, strategy: Strategy, settings: Settings, ablation: Ablation
) -> list[ShufflePoint]:
    """The results of the job that measures one order."""
    model, reference, method = view.model, ablation.reference, ablation.method
    n_texts, every = settings.n_texts, settings.every
    n_curves = N_SHUFFLES if strategy == "random" else N_DRAWS if method == "resample" else 1

    def work(report: Reporter) -> Iterator[ShufflePoint]:
        selection, evaluation = reference.selection, reference.evaluation
        return _measure(
            model, strategy, method, n_texts, every, selection, evaluation, on_progress=report
        )

    steps = 1 + -(-len(pruning.all_heads(model.config)) // every)
    weights = view.model.key
    points, _ = results(
        f"curve {strategy} {weights} {method} {n_texts} {every} {reference.key}",
        work,
        total=steps * n_curves,
        what=f"points, {strategy}",
        cost=_cost(view, strategy, settings),
        lane=f"curve {strategy}",
    )
    return points


def _measure(
    model: Model,
    strategy: Strategy,
    method: Method,
    n_texts: int,
    every: int,
    selection_texts: Sequence[str],
    evaluation_texts: Sequence[str],
    *,
    on_progress: OnProgress | None = None,
) -> Iterator[ShufflePoint]:
    """The points of one order, one shuffle or one draw of resampled values after the other.

    Several draws share one order, which the first one decides.
    """
    length = min(model.config.n_positions, MAX_CHUNK)
    selection = pruning.chunks(model, selection_texts[:n_texts], length)
    evaluation = pruning.chunks(model, evaluation_texts[:n_texts], length)
    repeated = 2 * min(SEGMENT, model.config.n_positions // 2)
    longest = max(repeated, *map(len, (*selection, *evaluation)))
    n = N_SHUFFLES if strategy == "random" else N_DRAWS
    values = draws(model, method, longest, selection_texts, n=n)
    order: list[Head] = []
    for curve in range(N_SHUFFLES if strategy == "random" else len(values)):
        replacement = values[curve % len(values)]
        ordered = pruning.order(
            model,
            selection,
            strategy,
            replacement=replacement,
            seed=curve,
            on_progress=on_progress,
        )
        if strategy == "random":
            order = list(ordered)
        points = pruning.curve(
            model,
            evaluation,
            order or _kept(ordered, order),
            method=replacement,
            every=every,
            repetition_seeds=REPETITION_SEEDS,
        )
        for point in points:
            yield ShufflePoint(curve, point)


def _kept(heads: Iterable[Head], into: list[Head]) -> Iterator[Head]:
    """The same heads, which are also appended to a list as they are read."""
    for head in heads:
        into.append(head)
        yield head


def _cost(view: View, strategy: Strategy, settings: Settings) -> str:
    """How much work a slow measurement takes; "" if it is quick."""
    config, n_texts = view.model.config, settings.n_texts
    n_heads = len(pruning.all_heads(config))
    if strategy == "greedy" and n_heads > 30:
        passes = pruning.greedy_passes(config, n_texts)
        return f"The greedy order takes {passes:,} forward passes."
    if config.n_layers * config.d_model > WIDE:
        return (
            f"Measuring the order “{strategy}” takes minutes with a model of this size "
            f"({n_heads} heads, {n_texts} texts)."
        )
    return ""


def _chart(view: View, curves: Curves, settings: Settings, ablation: Ablation) -> None:
    """The loss, or the agreement with the full model, against the number of heads removed."""
    metric = segmented_control("Metric", list(METRICS), "loss", "curve_what", show_label=False)
    budget = f"{settings.budget:.1%}"
    full = next(iter(curves.values()))[0][0]
    n_chunks = len(full.n_by_text)
    read = f"{n_chunks} held-out chunk{'s' * (n_chunks != 1)} ({sum(full.n_by_text):,} tokens)"
    if metric == "loss":
        text = (
            f"Mean loss in nats per token, on {read}. Each line is an order of removal. Dashed: "
            f"the full model, and {budget} above it."
        )
    elif metric == "agreement":
        text = (
            f"Top-1 agreement, on {read}: share of positions where the most likely token is the "
            "same as the full model's. Each line is an order of removal."
        )
    else:
        text = (
            "Mean loss on the second copy of random tokens that are written twice, in nats per "
            f"token ({len(REPETITION_SEEDS)} seeds). Each line is an order of removal. Dashed: the "
            "full model."
        )
    if ablation.method == "resample":
        text += (
            f" Each line is the mean over up to {N_DRAWS} draws of the resampled values (random: "
            "one for each shuffle), and the band spans them. The first draw decides the order."
        )
    caption("Heads removed", text)
    results_in_words = (
        f"{strategy}: {n_within(runs, settings.budget)} within {budget}"
        for strategy, runs in curves.items()
    )
    alt = f"{metric.capitalize()} against heads removed. {'; '.join(results_in_words)}."
    if metric == "loss":
        alt += f" Dashed: the full model's {full.loss:.3f}, and {budget} above it."
    plural = "s" * (settings.n_texts != 1)
    record_settings(
        Ablated_heads="those removed, in the orders of the figure",
        Curves_measured_on=f"{read}; heads ordered on {settings.n_texts} other text{plural}",
    )
    drawn = recipe(
        view,
        _draw_curves,
        method=ablation.method,
        n_texts=settings.n_texts,
        every=settings.every,
        orders=list(curves),
        curves=Given(curves, CURVES),
        metric=metric,
        budget=settings.budget,
        cannot=ablation.reference.cannot,
    )
    chart(drawn, key="curves", name=f"Pruning curves, {metric}", height=360, alt=alt)


def n_within(runs: Sequence[Sequence[Point]], budget: float) -> str:
    """How many heads can be removed within the budget: the range over several runs."""
    counts = sorted({pruning.heads_within(points, budget) for points in runs})
    span = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else f"{counts[0]}"
    return f"{span} head{'s' * (span != '1')}"


def _draw_curves(
    curves: Curves, metric: str, budget: float, theme: Theme, sizes: TextSizes
) -> Drawn:
    full = next(iter(curves.values()))[0][0]
    figure = pruning_curves(
        [_line(strategy, points, metric) for strategy, points in curves.items()],
        theme,
        uniform={"loss": full.loss, "repeated tokens": full.repetition_loss}.get(metric),
        budget=full.loss * (1 + budget) if metric == "loss" else None,
        title=metric,
        sizes=sizes,
    )
    data = rows_data(*_all_points(curves))
    return figure, data


def _line(strategy: Strategy, curves: Sequence[Sequence[Point]], metric: str) -> Curve:
    # While points come in, the last shuffle is shorter than the others and is not drawn.
    complete = [curve for curve in curves if len(curve) == max(map(len, curves))]
    rows = np.array([[getattr(p, METRICS[metric]) for p in curve] for curve in complete])
    return Curve(
        name=strategy,
        x=[point.n_removed for point in complete[0]],
        y=rows.mean(axis=0).tolist(),
        low=rows.min(axis=0).tolist() if len(complete) > 1 else [],
        high=rows.max(axis=0).tolist() if len(complete) > 1 else [],
    )


def _table(curves: Curves, settings: Settings, ablation: Ablation) -> None:
    """How many heads each order removes within the budget, and all points as a file."""
    rows: list[list[object]] = []
    for strategy, points in curves.items():
        within = [pruning.heads_within(curve, settings.budget) for curve in points]
        n = f"{min(within)} to {max(within)}" if len(within) > 1 else str(within[0])
        interval = pruning.heads_within_interval(points[0], settings.budget)
        if interval is not None and len(within) == 1:
            n += f" ({interval[0]} to {interval[1]})"
        repeated = [
            next(p.repetition_loss for p in curve if p.n_removed == count)
            for curve, count in zip(points, within, strict=True)
        ]
        rows.append([strategy, n, float(np.mean(repeated)), EXPLANATIONS[strategy]])
    full = next(iter(curves.values()))[0][0]
    spread = "In brackets: the 95% interval over held-out texts."
    if ablation.method == "resample":
        spread = "“… to …” is the range over draws of the resampled values."
    explained.note(
        f"{spread} “Repeated tokens” is the loss on "
        f"repeated random tokens with these heads removed; the full model's is "
        f"{full.repetition_loss:.2f}. A mean loss within the budget can hide a lost ability."
    )
    header = ["order", f"heads removed within {settings.budget:.1%}", "repeated tokens", "removes"]
    table(header, rows)
    download_table("curves.csv", *_all_points(curves))


def _all_points(curves: Curves) -> Table:
    rows: list[list[object]] = [
        [
            strategy,
            number,
            p.n_removed,
            p.loss,
            p.agreement,
            p.repetition_loss,
            " ".join(h.key for h in p.removed),
        ]
        for strategy, points in curves.items()
        for number, curve in enumerate(points)
        for p in curve
    ]
    header = ["order", "shuffle or draw", "heads removed", "loss", "agreement",
              "loss on repeated tokens", "removed in this step"]  # fmt: skip
    return header, rows
