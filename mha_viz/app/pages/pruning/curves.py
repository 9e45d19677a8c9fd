"""The Curves part: how many heads can go, in which order, on text that chose none of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st

from mha_viz import pruning
from mha_viz.app.view import View
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.chart import chart
from mha_viz.app.widgets.choices import check_link, number_input, segmented_control
from mha_viz.app.widgets.download_buttons import download_table
from mha_viz.app.widgets.reference_text import Reference
from mha_viz.app.widgets.tables import table
from mha_viz.app.work.progress import Reporter, leave, results
from mha_viz.figures.pruning_curves import Curve, pruning_curves
from mha_viz.head import Head
from mha_viz.pruning import Method, Point, Strategy

ORDERS: tuple[Strategy, ...] = pruning.STRATEGIES
FIRST = ["exact", "gradient", "random"]
SEEDS = 10  # of the random order
WORDS: dict[str, str] = {
    "exact": "by the loss without each head alone, measured once",
    "most important first": "the same, but what matters most goes first",
    "gradient": "by the gradient, once (Michel et al. 2019)",
    "gradient, recomputed": "by the gradient, taken anew after each head",
    "greedy": "each time the head that costs least now",
    "values": "by what the head moves",
    "confidence": "by its largest weights (Voita et al. 2019)",
    "random": f"{SEEDS} shuffles: the band spans all of them, the line is their mean",
}
PUBLISHED = (
    "To compare, with care: Voita et al. 2019 took 38 of 48 encoder heads out of a translation "
    "model for 0.15 BLEU, with gates trained for it; Michel et al. 2019 took about a fifth of the "
    "heads out of a translation model, and two fifths out of BERT, before it showed. Other models, "
    "other tasks, other measures than the loss below."
)


@dataclass(frozen=True, slots=True)
class Piece:
    """A point of one curve; the random order has one for each seed."""

    strategy: Strategy
    seed: int
    point: Point


@dataclass(frozen=True, slots=True)
class Settings:
    """Which orders, how many texts choose and measure, and how many heads go at a time."""

    strategies: tuple[Strategy, ...]
    n_texts: int
    every: int
    budget: float  # share of the whole model's loss


def show(view: View, method: Method, reference: Reference) -> None:
    """The curves of the chosen orders, as far as they are measured, and what they answer."""
    settings = choose(view, reference)
    points = gathered(view, settings, method, reference)
    if points:
        draw(view, points, settings)
        answers(points, settings)


def choose(view: View, reference: Reference) -> Settings:
    """The settings of the curves."""
    n_heads = len(pruning.all_heads(view.model.config))
    orders: list[str] = list(ORDERS)
    picked = st.pills(
        "Orders", orders, selection_mode="multi", wrap=True, default=FIRST, key="orders",
        bind="query-params",
    )  # fmt: skip
    most = min(len(reference.selection), len(reference.evaluation))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        n_texts = number_input("Texts that choose, and measure", 1, most, 3, "curve_texts")
        every = number_input("Heads at a time", 1, n_heads, max(1, n_heads // 36), "curve_every")
        budget = st.number_input(
            "Budget, % of the loss", 0.0, 100.0, 1.0, 0.5, key="budget", bind="query-params",
            width=170,
        )  # fmt: skip
    check_link("orders", picked)
    check_link("budget", str(budget))
    return Settings(
        tuple(name for name in ORDERS if name in picked),
        int(n_texts),
        int(every),
        float(budget) / 100,
    )


def gathered(
    view: View, settings: Settings, method: Method, reference: Reference
) -> dict[Strategy, list[list[Point]]]:
    """The points of each order so far, a list for each seed; drawn while they come."""
    found: dict[Strategy, list[list[Point]]] = {}
    if not settings.strategies:
        st.info("Pick an order in which heads go.")
        return found
    for strategy in set(ORDERS) - set(settings.strategies):
        leave(f"curve {strategy}")
    for strategy in settings.strategies:
        pieces = _pieces(view, strategy, settings, method, reference)
        if pieces:
            by_seed: dict[int, list[Point]] = {}
            for piece in pieces:
                by_seed.setdefault(piece.seed, []).append(piece.point)
            found[strategy] = list(by_seed.values())
    return found


def _pieces(
    view: View, strategy: Strategy, settings: Settings, method: Method, reference: Reference
) -> list[Piece]:
    n_heads = len(pruning.all_heads(view.model.config))
    steps = 1 + -(-n_heads // settings.every)
    seeds = range(SEEDS if strategy == "random" else 1)
    n = settings.n_texts
    model, every = view.model, settings.every
    name = " ".join(
        ("curve", strategy, view.about.weights_hash, method, str(n), str(every), reference.key)
    )

    def work(report: Reporter) -> Iterator[Piece]:
        limit = min(model.config.n_positions, 512)
        chooses = pruning.chunks(model, reference.selection[:n], limit)
        measures = pruning.chunks(model, reference.evaluation[:n], limit)
        length = max(map(len, (*chooses, *measures)))
        filling = pruning.make_replacement(model, method, length, reference.selection)
        for seed in seeds:
            order = pruning.order(
                model, chooses, strategy, replacement=filling, seed=seed, on_progress=report
            )
            for point in pruning.curve(model, measures, order, method=filling, every=every):
                yield Piece(strategy, seed, point)

    pieces, _ = results(
        name, work, total=steps * len(seeds), what=f"points, {strategy}",
        cost=_cost(view, strategy, settings), lane=f"curve {strategy}",
    )  # fmt: skip
    return pieces


def _cost(view: View, strategy: Strategy, settings: Settings) -> str:
    """What it takes, where it takes long; empty where it is done in a moment."""
    config = view.model.config
    n = len(pruning.all_heads(config))
    if strategy == "greedy":
        passes = pruning.greedy_passes(config, settings.n_texts)
        if n > 30:
            return f"Greedy asks for {passes:,} forward passes."
    if config.n_layers * config.d_model > 4000:
        return (
            f"{strategy}: {n} heads on {settings.n_texts} texts; minutes on a model of this size."
        )
    return ""


def draw(view: View, found: dict[Strategy, list[list[Point]]], settings: Settings) -> None:
    """Loss, or agreement with the whole model, against heads removed."""
    what = segmented_control(
        "Against", ["loss", "agreement"], "loss", "curve_what", show_label=False
    )
    whole = next(curves[0][0] for curves in found.values())
    words = (
        "mean loss in nats a token"
        if what == "loss"
        else "share of positions whose likeliest next token is that of the whole model"
    )
    caption(
        "Heads removed",
        f"{words}, on texts that chose no order; dashed: the whole model, and "
        f"{settings.budget:.1%} above it."
        if what == "loss"
        else f"{words}.",
    )
    chart(
        pruning_curves(
            [_curve(name, curves, what) for name, curves in found.items()], view.theme,
            level=whole.loss if what == "loss" else None,
            budget=whole.loss * (1 + settings.budget) if what == "loss" else None,
            title=what, sizes=view.sizes,
        ),
        key="curves", height=360, alt=_sentence(found, settings),
    )  # fmt: skip


def _curve(name: Strategy, curves: Sequence[Sequence[Point]], what: str) -> Curve:
    # While it is drawn, the last shuffle is shorter than the others: it waits.
    full = [curve for curve in curves if len(curve) == max(map(len, curves))]
    rows = np.array([[p.loss if what == "loss" else p.agreement for p in curve] for curve in full])
    return Curve(
        name=name,
        x=[point.n_removed for point in full[0]],
        y=rows.mean(axis=0).tolist(),
        low=rows.min(axis=0).tolist() if len(full) > 1 else [],
        high=rows.max(axis=0).tolist() if len(full) > 1 else [],
    )


def answers(found: dict[Strategy, list[list[Point]]], settings: Settings) -> None:
    """How many heads can go within the budget, order by order, and all points as a file."""
    rows: list[list[object]] = []
    for strategy, curves in found.items():
        within = [pruning.heads_within(curve, settings.budget) for curve in curves]
        n = f"{min(within)} to {max(within)}" if len(within) > 1 else str(within[0])
        rows.append([strategy, WORDS[strategy], n])
    table(["order", "what goes first", f"heads gone within {settings.budget:.1%}"], rows)
    download_table(
        "curves.csv", ["order", "seed", "heads removed", "loss", "agreement", "went"],
        [
            [name, seed, p.n_removed, p.loss, p.agreement,
             " ".join(Head(i, h).key for i, h in p.removed)]
            for name, curves in found.items()
            for seed, curve in enumerate(curves)
            for p in curve
        ],
    )  # fmt: skip
    st.caption(PUBLISHED)


def _sentence(found: dict[Strategy, list[list[Point]]], settings: Settings) -> str:
    parts = [
        f"{name}: {pruning.heads_within(curves[0], settings.budget)} heads within "
        f"{settings.budget:.1%}"
        for name, curves in found.items()
    ]
    return "Loss against heads removed. " + "; ".join(parts) + "."
