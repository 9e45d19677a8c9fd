"""Each measure on patterns with a known value, and the intervals around them."""

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.patterns import random_pattern

from mha_viz.errors import ShapeError
from mha_viz.heads import MEASURES, patterns, summary
from mha_viz.heads.interval import interval, t_quantile
from mha_viz.heads.patterns import NEAR, POSITIONAL, targets
from mha_viz.heads.repeated import FOUR_TIMES
from mha_viz.tokens import Token
from mha_viz.trace import Array

T = 40


def looks_at(keys: list[int]) -> Array:
    """The pattern in which query i puts all its weight on key keys[i]."""
    return np.eye(len(keys), dtype=np.float32)[keys]


def shift(offset: int, n: int = T) -> Array:
    """Every query looks `offset` tokens back, or at the first token if there are fewer."""
    return looks_at([max(0, i - offset) for i in range(n)])


def uniform(n: int = T) -> Array:
    """Every query looks at all its keys equally."""
    return (np.tril(np.ones((n, n))) / np.arange(1, n + 1)[:, None]).astype(np.float32)


IDENTITY, PREVIOUS, SINK = shift(0), shift(1), shift(T)
HARMONIC = float(np.mean(1 / np.arange(2, T + 1)))  # the mean of 1 / (i + 1) over i >= 1


@pytest.mark.parametrize(
    ("measure", "identity", "previous", "sink", "spread"),
    [
        (patterns.previous_token, 0, 1, 1 / (T - 1), HARMONIC),
        (patterns.first_token, 0, 1 / (T - 1), 1, HARMONIC),
        (patterns.itself, 1, 0, 0, HARMONIC),
        (patterns.entropy, 0, 0, 0, 1),
        (patterns.distance, 0, 1, T / 2, T / 4),
        (patterns.confidence, 1, 1, 1, HARMONIC),
        # All keys equal: the first of equals is the sink, at T - 1 offsets.
        (lambda pattern: patterns.positional(targets(pattern)), 1, 1, 1 / (T - 1), 1 / (T - 1)),
        (lambda pattern: patterns.syntactic_by_offset(targets(pattern)), 0, 0, 0, 0),
    ],
)
def test_a_measure_on_known_patterns(measure, identity, previous, sink, spread) -> None:
    found = [measure(pattern) for pattern in (IDENTITY, PREVIOUS, SINK, uniform())]
    assert found == pytest.approx([identity, previous, sink, spread], abs=1e-6)


def test_row_0_never_counts_even_on_request() -> None:
    everything = np.arange(T)
    for pattern in (PREVIOUS, SINK, uniform()):
        assert patterns.itself(pattern, everything) == patterns.itself(pattern)
        assert patterns.previous_token(pattern, everything) == patterns.previous_token(pattern)


def test_only_the_queries_asked_for_count() -> None:
    pattern = looks_at([0, 1, 1, 1, 4, 4])
    assert patterns.itself(pattern) == pytest.approx(2 / 5)
    assert patterns.itself(pattern, np.array([1, 4])) == 1
    assert patterns.previous_token(pattern, np.array([2, 5])) == 1


def test_special_tokens_are_not_ordinary() -> None:
    kinds = ["special", "text", "bytes", "special", "text"]
    tokens = [Token(n, b"x", "x", kind) for n, kind in enumerate(kinds)]
    assert patterns.text_positions(tokens).tolist() == [1, 2, 4]


def test_confidence_leaves_out_keys_that_do_not_count() -> None:
    pattern = np.array([[1, 0, 0], [0.9, 0.1, 0], [0.2, 0.5, 0.3]], dtype=np.float32)
    assert patterns.confidence(pattern) == pytest.approx((0.9 + 0.5) / 2)
    assert patterns.confidence(pattern, keys=np.array([1, 2])) == pytest.approx((0.1 + 0.5) / 2)


def test_a_head_of_one_offset_is_positional_and_its_offset_is_found() -> None:
    assert patterns.favourite_offset(targets(shift(3))) == (3, pytest.approx((T - 3) / (T - 1)))
    assert patterns.positional(targets(shift(3))) > POSITIONAL
    mixed = looks_at([max(0, i - 1 - i % 2) for i in range(T)])
    assert patterns.positional(targets(mixed)) < POSITIONAL


def test_what_one_near_offset_explains_is_not_syntax() -> None:
    """Two thirds look one back, a third two back: a third is left unexplained."""
    looked = [0, 0] + [i - 1 - (i % 3 == 0) for i in range(2, T)]
    explained = sum(i % 3 == 0 for i in range(3, T))
    assert patterns.syntactic_by_offset(targets(looks_at(looked))) == pytest.approx(
        explained / (T - 1)
    )
    for second, expected in [(NEAR, 8 / (T - 1)), (NEAR + 1, 0)]:
        sometimes = [max(0, i - (second if i >= T - 8 else 1)) for i in range(T)]
        found = patterns.syntactic_by_offset(targets(looks_at(sometimes)))
        assert found == pytest.approx(expected), "near ends somewhere"


def test_the_rarest_token_so_far() -> None:
    rarity = np.array([3, 5, 1, 9, 2, 2])
    # Rows 2 (rarest: 1), 4 and 5 (rarest: 3) count; 1 and 3 are the rarest themselves.
    assert patterns.rare_token(targets(looks_at([0, 1, 1, 3, 3, 3])), rarity) == 1
    assert patterns.rare_token(targets(looks_at([0, 1, 1, 3, 0, 4])), rarity) == pytest.approx(
        1 / 3
    )


def test_a_first_token_that_is_the_rarest_says_nothing() -> None:
    assert math.isnan(patterns.rare_token(targets(shift(T, 5)), np.array([9, 1, 2, 3, 4])))


# --- tokens that repeat ---------------------------------------------------------------------------


def test_an_exact_induction_head_and_its_neighbours() -> None:
    """The two heads differ by an offset of one, and neither is taken for the other."""
    n = 10
    induction = looks_at([0 if i < n else i - n + 1 for i in range(2 * n)])
    duplicate = looks_at([0 if i < n else i - n for i in range(2 * n)])
    assert patterns.induction(induction, n) == 1
    assert patterns.duplicate_token(duplicate, n) == 1
    assert patterns.duplicate_token(induction, n) == patterns.induction(duplicate, n) == 0


def test_a_sink_is_no_duplicate_token_head() -> None:
    assert patterns.duplicate_token(shift(20, 20), 10) == 0


def test_equal_keys_on_tokens_that_repeat() -> None:
    n = 10
    rows = np.arange(n, 2 * n)
    assert patterns.induction(uniform(2 * n), n) == pytest.approx(np.mean(1 / (rows + 1)), abs=1e-7)
    assert patterns.duplicate_token(uniform(2 * n), n) == pytest.approx(
        np.mean(1 / (rows[1:] + 1)), abs=1e-7
    )


def test_prefix_matching_adds_up_over_all_earlier_copies() -> None:
    n, copies = 5, 4
    ids = [*range(100, 100 + n)] * copies
    latest = looks_at([0 if i < n else i - n + 1 for i in range(n * copies)])
    assert patterns.prefix_matching(latest, ids) == 1
    earliest = looks_at([0 if i < n else i % n + 1 for i in range(n * copies)])
    assert patterns.prefix_matching(earliest, ids) == 1
    assert patterns.induction(earliest, n) == pytest.approx(1 / (copies - 1)), "one copy back alone"
    rows = np.arange(n, n * copies)
    expected = np.mean((rows // n) / (rows + 1))
    assert patterns.prefix_matching(uniform(n * copies), ids) == pytest.approx(expected, abs=1e-7)


def by_olsson(pattern: np.ndarray, ids: list[int]) -> float:
    """The mean of all entries from a token to those that followed its earlier copies, as they say.

    Olsson et al. 2022, "head activation evaluators"; without their start token.
    """
    entries = [pattern[i, j + 1] for i in range(len(ids)) for j in range(i - 1) if ids[j] == ids[i]]
    return float(np.mean(entries, dtype=np.float64))


def test_prefix_matching_is_twice_that_of_olsson_on_four_copies() -> None:
    """What `MEASURES` says of the difference, on the lengths that are measured."""
    period, copies = FOUR_TIMES
    for seed in range(5):
        pattern, ids = random_pattern(period * copies, seed), [*range(period)] * copies
        ours, theirs = patterns.prefix_matching(pattern, ids), by_olsson(pattern, ids)
        assert ours == pytest.approx(2 * theirs, rel=1e-6)
        twice = random_pattern(2 * period, seed), [*range(period)] * 2
        assert patterns.prefix_matching(*twice) == pytest.approx(by_olsson(*twice), rel=1e-6)
    said = MEASURES["prefix_matching"].exclusions
    assert "average single entries, which on 4 copies gives half" in said
    assert "most and the least common tokens" in said
    assert "start token" in said


def test_prefix_matching_equals_induction_on_two_copies() -> None:
    n = 8
    rows = np.tril(np.random.default_rng(0).random((2 * n, 2 * n)))
    pattern = (rows / rows.sum(axis=1, keepdims=True)).astype(np.float32)
    by_ids = patterns.prefix_matching(pattern, [*range(n)] * 2)
    assert by_ids == pytest.approx(patterns.induction(pattern, n), abs=1e-6)


def test_a_token_that_follows_its_own_copy_is_not_its_own_target() -> None:
    assert math.isnan(patterns.prefix_matching(shift(0, 2), [7, 7]))
    # The third 7 counts for what followed the first, which is the second; not for itself.
    assert patterns.prefix_matching(shift(0, 3), [7, 7, 7]) == 0
    assert patterns.prefix_matching(shift(1, 3), [7, 7, 7]) == 1


# --- nothing to measure ---------------------------------------------------------------------------

EVERY_MEASURE = {
    "previous_token": patterns.previous_token,
    "first_token": patterns.first_token,
    "self": patterns.itself,
    "entropy": patterns.entropy,
    "distance": patterns.distance,
    "confidence": patterns.confidence,
    "positional": lambda pattern: patterns.positional(targets(pattern)),
    "syntactic_by_offset": lambda pattern: patterns.syntactic_by_offset(targets(pattern)),
    "rare_token": lambda pattern: patterns.rare_token(
        targets(pattern), np.arange(len(pattern)) % 3
    ),
    "duplicate_token": lambda pattern: patterns.duplicate_token(pattern, 2),
    "induction": lambda pattern: patterns.induction(pattern, 2),
    "prefix_matching": lambda pattern: patterns.prefix_matching(
        pattern, [n % 2 for n in range(len(pattern))]
    ),
}


@pytest.mark.parametrize("name", EVERY_MEASURE)
@pytest.mark.parametrize(
    "pattern", [np.ones((1, 1)), np.full((6, 6), np.nan)], ids=["one", "pruned"]
)
def test_one_token_and_a_pruned_head_have_no_measure(name: str, pattern: np.ndarray) -> None:
    assert math.isnan(EVERY_MEASURE[name](pattern.astype(np.float32)))


def test_numbers_of_heads_need_neither_torch_nor_pandas_to_import() -> None:
    code = (
        "import sys, mha_viz.heads; print({'torch', 'pandas', 'transformers'} & set(sys.modules))"
    )
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True)
    assert done.stdout.strip() == "set()", done.stderr


# --- the five measures at once --------------------------------------------------------------------


def test_the_summary_of_a_head_that_looks_at_itself() -> None:
    found = summary(np.eye(T, dtype=np.float32))
    assert (found.itself, found.previous_token, found.first_token) == (1, 0, 0)
    assert (found.entropy, found.distance) == (0, 0)


def test_the_summary_of_a_previous_token_head() -> None:
    pattern = np.eye(T, k=-1, dtype=np.float32)
    pattern[0, 0] = 1
    found = summary(pattern)
    assert found.previous_token == 1
    assert found.itself == 0
    assert found.first_token == pytest.approx(1 / (T - 1))  # token 1's previous is token 0
    assert found.distance == 1


def test_the_summary_of_a_head_that_looks_at_the_first_token() -> None:
    pattern = np.zeros((T, T), dtype=np.float32)
    pattern[:, 0] = 1
    found = summary(pattern)
    assert found.first_token == 1
    assert found.entropy == 0
    assert found.distance == pytest.approx(T / 2)


def test_the_summary_of_a_head_that_looks_at_all_keys_equally() -> None:
    pattern = np.tril(np.ones((T, T))) / np.arange(1, T + 1)[:, None]
    found = summary(pattern.astype(np.float32))
    assert found.entropy == pytest.approx(1, abs=1e-6)
    assert found.itself == pytest.approx(np.mean(1 / np.arange(2, T + 1)), abs=1e-6)


def test_the_summary_of_one_token_is_nan() -> None:
    found = summary(np.ones((1, 1), dtype=np.float32))
    assert math.isnan(found.first_token)
    assert math.isnan(found.entropy)


# --- intervals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("degrees", "expected"),
    [(1, 12.7062), (2, 4.3027), (3, 3.1824), (4, 2.7764), (9, 2.2622), (30, 2.0423), (100, 1.9840)],
)
def test_t_is_that_of_the_tables(degrees: int, expected: float) -> None:
    assert t_quantile(degrees) == pytest.approx(expected, abs=5e-5)


def test_an_interval_of_four_measurements() -> None:
    """Mean 5, standard deviation sqrt(20 / 3), t = 3.1824 with 3 degrees of freedom."""
    mean, low, high = interval(np.array([[2.0], [4.0], [6.0], [8.0]]))
    half = 3.1824 * math.sqrt(20 / 3) / 2
    assert (mean[0], low[0], high[0]) == pytest.approx((5, 5 - half, 5 + half), abs=1e-3)


def test_what_was_not_measured_does_not_count() -> None:
    values = np.array([[1.0, 1.0, np.nan], [3.0, np.nan, np.nan], [5.0, np.nan, np.nan]])
    mean, low, high = interval(values)
    np.testing.assert_array_equal(mean, [3.0, 1.0, np.nan])
    assert np.isnan(low[1:]).all()
    assert np.isnan(high[1:]).all()
    assert low[0] == pytest.approx(3 - 4.3027 * 2 / math.sqrt(3), abs=1e-3)


def test_intervals_hold_the_truth_nineteen_times_in_twenty() -> None:
    draws = np.random.default_rng(1).normal(loc=3.0, size=(5, 4000))
    _, low, high = interval(draws)
    share = np.mean((low <= 3.0) & (high >= 3.0))
    assert share == pytest.approx(0.95, abs=0.012), "3.5 standard errors of 4,000 draws"


def test_no_measurement_has_no_mean() -> None:
    with pytest.raises(ShapeError, match="needs at least one"):
        interval(np.empty((0, 2)))
    with pytest.raises(ShapeError, match="degrees = 0"):
        t_quantile(0)
