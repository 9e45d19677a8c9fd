"""Orders of removal, against brute force."""

import numpy as np
import pytest
from support.pruning import HEADS, SELECTION, H, outcome

from mha_viz import pruning
from mha_viz.errors import ShapeError
from mha_viz.model import Model
from mha_viz.pruning import order


def by(scores: np.ndarray) -> list[tuple[int, int]]:
    return [divmod(int(i), H) for i in np.argsort(scores.ravel(), kind="stable")]


def weighted(scores: list[np.ndarray]) -> np.ndarray:
    """The mean in which every token with a loss counts the same, as in a curve."""
    return np.average(scores, axis=0, weights=[len(text) - 1 for text in SELECTION])


def test_orders_that_look_once(tiny: Model):
    exact = weighted([pruning.ablate_each_head(tiny, text) for text in SELECTION])
    values = weighted([pruning.value_importance(tiny, text) for text in SELECTION])
    sure = weighted([pruning.confidence(tiny, text) for text in SELECTION])
    assert list(order(tiny, SELECTION, "exact")) == by(exact)
    assert list(order(tiny, SELECTION, "most important first")) == by(exact)[::-1]
    assert list(order(tiny, SELECTION, "values")) == by(values)
    assert list(order(tiny, SELECTION, "confidence")) == by(sure)
    assert list(order(tiny, SELECTION, "gradient")) == by(
        pruning.gradient_importance(tiny, SELECTION)
    )


def test_greedy_removes_the_cheapest_head_each_time(tiny: Model):
    removed: list[tuple[int, int]] = []
    for head in order(tiny, SELECTION, "greedy"):
        costs = {
            other: np.concatenate(
                [outcome(tiny, ids, [*removed, other])[0] for ids in SELECTION]
            ).mean()
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


def test_random_orders_are_seeded_and_complete(tiny: Model):
    orders = [tuple(order(tiny, SELECTION, "random", seed=seed)) for seed in range(10)]
    assert len(set(orders)) == 10
    assert all(sorted(one) == HEADS for one in orders)
    assert orders[3] == tuple(order(tiny, SELECTION, "random", seed=3))


def test_an_unknown_strategy_is_rejected_at_once(tiny: Model):
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
def test_progress_is_the_fraction_of_the_next_choice(tiny: Model, strategy: pruning.Strategy):
    reported: list[float] = []
    next(order(tiny, SELECTION, strategy, on_progress=reported.append))
    assert reported == sorted(reported)
    assert reported[-1] == pytest.approx(1.0)
