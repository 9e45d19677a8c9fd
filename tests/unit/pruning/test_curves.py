"""Orders and pruning curves, against whole forward passes and brute force."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from support.pruning import HEADS, IDS, OTHER_IDS, H, L
from torch.nn import functional as F

from mha_viz import pruning
from mha_viz.analysis import reference_texts
from mha_viz.errors import HeadNotFound, ShapeError, TextError
from mha_viz.model import Model
from mha_viz.pruning import Point, band, curve, heads_within, order

SELECTION = [IDS, OTHER_IDS]
EVALUATION = [OTHER_IDS[20:50], IDS[:9]]


def outcome(model: Model, ids: list[int], removed: list) -> tuple[np.ndarray, np.ndarray]:
    """(losses, most likely next tokens) of the network under a gate."""
    gate = pruning.gate_without(model.config, removed)
    logits = model.network(torch.tensor([ids]), head_gate=gate)[0]
    losses = F.cross_entropy(logits[:-1], torch.tensor(ids[1:]), reduction="none")
    return losses.numpy(), logits.argmax(-1).numpy()


# --- the curve ------------------------------------------------------------------------------------


@pytest.mark.parametrize("every", [1, 3, 100])
def test_a_curve_equals_whole_passes(tiny: Model, every: int):
    heads = [HEADS[i] for i in (5, 0, 3, 7, 1, 2, 6)]
    points = list(curve(tiny, EVALUATION, heads, every=every))
    numbers = sorted({0, *range(0, len(heads) + 1, every), len(heads)})
    assert [point.n_removed for point in points] == numbers
    assert [head for point in points for head in point.removed] == heads
    whole = [outcome(tiny, ids, [])[1] for ids in EVALUATION]
    for point in points:
        found = [outcome(tiny, ids, heads[: point.n_removed]) for ids in EVALUATION]
        losses = np.concatenate([losses for losses, _ in found])
        same = np.concatenate([best == w for (_, best), w in zip(found, whole, strict=True)])
        assert point.loss == pytest.approx(losses.mean(), abs=1e-5)
        assert point.agreement == pytest.approx(same.mean(), abs=1e-6)
    assert points[0].agreement == 1.0


def test_a_curve_asks_for_a_head_when_it_is_to_go(tiny: Model):
    asked = []

    def slow() -> Iterator[tuple[int, int]]:
        for head in HEADS:
            asked.append(head)
            yield head

    running = curve(tiny, EVALUATION, slow())
    kept = [next(running) for _ in range(3)]
    assert asked == HEADS[:2]
    running.close()
    assert [point.n_removed for point in kept] == [0, 1, 2]


def test_a_curve_with_means(tiny: Model):
    replacement = pruning.make_replacement(tiny, "mean", 40, SELECTION)
    points = list(curve(tiny, EVALUATION, HEADS, method=replacement))
    losses = [
        pruning.losses(tiny, ids, gate=np.zeros((L, H)), replacement=replacement)
        for ids in EVALUATION
    ]
    assert points[-1].loss == pytest.approx(np.concatenate(losses).mean(), abs=1e-5)
    by_name = list(curve(tiny, "the cat sat on the mat", HEADS[:1], method="position-wise mean"))
    assert len(by_name) == 2


@pytest.mark.parametrize(
    ("heads", "words"),
    [
        ([(0, 0), (2, 0)], "L2 H0 is not in this model: layers count from 0 to 1"),
        ([(0, 4)], "heads from 0 to 3"),
        ([(0, 0), (1, 1), (0, 0)], "L0 H0 is in the order twice"),
    ],
)
def test_an_order_names_heads_that_are_there_once(tiny: Model, heads: list, words: str):
    with pytest.raises(HeadNotFound, match=words):
        list(curve(tiny, EVALUATION, heads))


def test_a_curve_needs_a_text_and_a_step(tiny: Model):
    with pytest.raises(ShapeError, match="every = 0"):
        next(curve(tiny, EVALUATION, HEADS, every=0))
    with pytest.raises(TextError, match="There is no text"):
        next(curve(tiny, [], HEADS))
    with pytest.raises(TextError, match="has 1 token"):
        next(curve(tiny, [IDS, [3]], HEADS))


# --- orders ---------------------------------------------------------------------------------------


def by(scores: np.ndarray) -> list[tuple[int, int]]:
    return [divmod(int(i), H) for i in np.argsort(scores.ravel(), kind="stable")]


def test_orders_that_look_once(tiny: Model):
    exact = np.mean([pruning.ablate_each_head(tiny, text) for text in SELECTION], axis=0)
    values = np.mean([pruning.value_importance(tiny, text) for text in SELECTION], axis=0)
    sure = np.mean([pruning.confidence(tiny, text) for text in SELECTION], axis=0)
    assert list(order(tiny, SELECTION, "exact")) == by(exact)
    assert list(order(tiny, SELECTION, "most important first")) == by(exact)[::-1]
    assert list(order(tiny, SELECTION, "values")) == by(values)
    assert list(order(tiny, SELECTION, "confidence")) == by(sure)
    assert list(order(tiny, SELECTION, "gradient")) == by(
        pruning.gradient_importance(tiny, SELECTION)
    )


def test_greedy_takes_what_costs_least_now(tiny: Model):
    removed: list[tuple[int, int]] = []
    for head in order(tiny, SELECTION, "greedy"):
        costs = {
            other: np.mean([outcome(tiny, ids, [*removed, other])[0].mean() for ids in SELECTION])
            for other in HEADS
            if other not in removed
        }
        assert costs[head] <= min(costs.values()) + 1e-5
        removed.append(head)
    assert sorted(removed) == HEADS
    assert removed != list(order(tiny, SELECTION, "exact")), "it is another order"


def test_greedy_costs_as_many_passes_as_it_says(tiny: Model, monkeypatch: pytest.MonkeyPatch):
    counted = 0
    real = pruning.orders.ablation_effects

    def counting(*given: object, **named: object) -> np.ndarray:
        nonlocal counted
        found = real(*given, **named)
        counted += int(np.isfinite(found).sum())
        return found

    monkeypatch.setattr(pruning.orders, "ablation_effects", counting)
    list(order(tiny, SELECTION, "greedy"))
    assert counted == pruning.greedy_passes(tiny.config, n_texts=2) == 2 * 8 * 9 // 2


def test_the_gradient_is_looked_at_again_after_each_head(tiny: Model):
    removed: list[tuple[int, int]] = []
    for head in order(tiny, SELECTION, "gradient, recomputed"):
        gate = pruning.gate_without(tiny.config, removed)
        scores = pruning.gradient_importance(tiny, SELECTION, gate=gate)
        assert scores[head] == np.nanmin(scores)
        removed.append(head)
    assert sorted(removed) == HEADS


def test_random_orders_are_seeded_and_whole(tiny: Model):
    orders = [tuple(order(tiny, SELECTION, "random", seed=seed)) for seed in range(10)]
    assert len(set(orders)) == 10
    assert all(sorted(one) == HEADS for one in orders)
    assert orders[3] == tuple(order(tiny, SELECTION, "random", seed=3))


def test_an_unknown_strategy_is_refused_at_once(tiny: Model):
    with pytest.raises(
        ShapeError, match="strategy = 'best'; expected one of: exact; most important first"
    ):
        order(tiny, SELECTION, "best")  # type: ignore[arg-type]


def test_the_order_of_scores():
    scores = np.array([[0.5, np.nan, -1.0], [0.5, 0.0, 2.0]])
    expected = [(0, 2), (1, 1), (0, 0), (1, 0), (1, 2)]
    assert pruning.removal_order(scores) == expected
    assert pruning.removal_order(scores, most_important_first=True) == [
        (1, 2), (0, 0), (1, 0), (1, 1), (0, 2),
    ]  # fmt: skip


@pytest.mark.parametrize("strategy", ["exact", "greedy", "gradient, recomputed"])
def test_progress_tells_the_share_of_the_next_choice(tiny: Model, strategy: pruning.Strategy):
    reported: list[float] = []
    next(order(tiny, SELECTION, strategy, on_progress=reported.append))
    assert reported == sorted(reported)
    assert reported[-1] == pytest.approx(1.0)


# --- what is read off -----------------------------------------------------------------------------


def points_of(*losses: float) -> list[Point]:
    return [Point(n, (), loss, 1.0) for n, loss in enumerate(losses)]


def test_how_many_heads_can_go():
    assert heads_within(points_of(4.0, 3.9, 4.04, 4.05, 4.0)) == 2  # what comes after is too late
    assert heads_within(points_of(4.0, 4.3)) == 0
    assert heads_within(points_of(4.0, 4.3), 0.1) == 1
    assert heads_within(points_of(4.0, float("nan"), 4.0)) == 0
    for points in ([], points_of(4.0, 4.0)[1:]):
        with pytest.raises(ShapeError, match="first point is missing"):
            heads_within(points)


def test_a_band_is_as_wide_as_its_curves():
    found = band([points_of(4, 5, 6), points_of(4, 7, 4, 9), points_of(4, 6, 5)])
    assert [(b.n_removed, b.low, b.mean, b.high) for b in found] == [
        (0, 4, 4, 4), (1, 5, 6, 7), (2, 4, 5, 6),
    ]  # fmt: skip
    with pytest.raises(ShapeError, match="no curve"):
        band([])
    with pytest.raises(ShapeError, match="different numbers"):
        band([points_of(4, 5), points_of(4, 5)[1:]])


def test_on_the_bundled_model_a_good_order_beats_chance_and_the_worst_does_not(bundled: Model):
    """Selected on some paragraphs, evaluated on others: half of the heads removed."""
    selection, evaluation = (
        reference_texts.selection_texts()[:2],
        reference_texts.evaluation_texts()[:2],
    )

    def half(strategy: pruning.Strategy, seed: int = 0) -> float:
        heads = list(order(bundled, selection, strategy, seed=seed))[:12]
        return list(curve(bundled, evaluation, heads, every=12))[-1].loss

    chance = [half("random", seed) for seed in range(10)]
    assert half("exact") < min(chance)
    assert half("gradient") < min(chance)
    assert half("most important first") > np.mean(chance) + 0.5
