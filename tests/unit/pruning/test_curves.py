"""Pruning curves, checked against full forward passes."""

from collections.abc import Iterator

import numpy as np
import pytest
from support.pruning import EVALUATION, HEADS, IDS, SELECTION, H, L, outcome

from mha_viz import pruning
from mha_viz.analysis import reference_texts
from mha_viz.errors import HeadNotFound, ShapeError, TextError
from mha_viz.model import Model
from mha_viz.pruning import Point, band, curve, heads_within, heads_within_interval, order


@pytest.mark.parametrize("every", [1, 3, 100])
def test_a_curve_equals_full_passes(tiny: Model, every: int):
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


def test_a_curve_reads_each_head_only_when_it_removes_it(tiny: Model):
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
        ([(0, 0), (2, 0)], "L2 H0 is not in this model, which has layers 0 to 1"),
        ([(0, 4)], "heads 0 to 3"),
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


def points_of(*losses: float) -> list[Point]:
    return [Point(n, (), loss, 1.0) for n, loss in enumerate(losses)]


def test_how_many_heads_can_go():
    assert heads_within(points_of(4.0, 3.9, 4.04, 4.05, 4.0)) == 2  # later points do not count
    assert heads_within(points_of(4.0, 4.3)) == 0
    assert heads_within(points_of(4.0, 4.3), 0.1) == 1
    assert heads_within(points_of(4.0, float("nan"), 4.0)) == 0
    for points in ([], points_of(4.0, 4.0)[1:]):
        with pytest.raises(ShapeError, match="first point is missing"):
            heads_within(points)


def test_a_curve_has_the_loss_on_repeated_tokens(tiny: Model):
    points = list(curve(tiny, EVALUATION, HEADS, repetition_seeds=[0, 1]))
    assert np.isnan(next(curve(tiny, EVALUATION, HEADS)).repetition_loss)
    for point in (points[0], points[-1]):
        gate = pruning.gate_without(tiny.config, HEADS[: point.n_removed])
        segment = min(64, tiny.config.n_positions // 2)
        expected = pruning.induction_loss(tiny, gate=gate, segment=segment, seeds=[0, 1])
        assert point.repetition_loss == pytest.approx(expected, abs=1e-6)
        assert sum(point.loss_by_text) / sum(point.n_by_text) == pytest.approx(point.loss)


def test_the_interval_of_heads_within_is_over_texts():
    def points(*losses: tuple[float, ...]) -> list[Point]:
        return [
            Point(n, (), float(np.mean(of_texts)), 1.0, 0.0, of_texts, (1,) * len(of_texts))
            for n, of_texts in enumerate(losses)
        ]

    same = points((4.0, 4.0, 4.0), (4.03, 4.03, 4.03), (4.2, 4.2, 4.2))
    assert heads_within_interval(same) == (1, 1)
    # One text of four bears no removal: a resample without it allows both heads.
    mixed = points((4.0, 4.0, 4.0, 4.0), (4.0, 4.0, 4.0, 4.5), (4.0, 4.0, 4.0, 4.6))
    assert heads_within(mixed) == 0
    assert heads_within_interval(mixed) == (0, 2)
    assert heads_within_interval(points((4.0, 4.0), (4.0, 4.0))) is None
    with pytest.raises(ShapeError, match="first point is missing"):
        heads_within_interval(same[1:])


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
