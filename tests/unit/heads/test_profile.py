"""Head profiles: what is measured, its intervals, and what the card of the bundled model says."""

import copy
import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from mha_viz.analysis.reference_texts import reference_texts
from mha_viz.checkpoints import BUNDLED
from mha_viz.errors import ShapeError, TextError
from mha_viz.gpt2 import GPT2
from mha_viz.heads import MEASURES, measure, measure_texts, patterns, summary
from mha_viz.heads.interval import bounded_interval, interval
from mha_viz.heads.measures import ON_RANDOM_TOKENS
from mha_viz.heads.profile import text_scores
from mha_viz.heads.repeated import repeated_tokens
from mha_viz.model import Model
from mha_viz.tokens import Token
from mha_viz.trace import Trace

TEXTS = (
    "The old king sat by the fire, and the old king wept.",
    "A fox.",
    "Once upon a time there was a girl who lived in a small house by the sea with her cat.",
)


def at(frame: pd.DataFrame, layer: int, head: int) -> pd.Series:
    (row,) = frame.index[(frame["layer"] == layer) & (frame["head"] == head)]
    return frame.loc[row]


def without_heads(model: Model, removed: tuple[tuple[int, ...], ...]) -> Model:
    """A model with random weights and some heads pruned."""
    torch.manual_seed(5)
    network = GPT2(replace(model.config, pruned_heads=removed)).eval().requires_grad_(False)
    return replace(model, network=network)


def hand_made(weights: np.ndarray, kinds: Sequence[str]) -> Trace:
    """One head with these weights `[T, T]`, over tokens of these kinds."""
    details = tuple(Token(n, b"x", "x", kind) for n, kind in enumerate(kinds))
    q = np.log(np.maximum(weights, 1e-30)).astype(np.float32)[None, None]
    k = np.eye(len(weights), dtype=np.float32)[None, None]
    return Trace("a test", "", details, q, k, k.copy(), np.zeros(3, np.float32), (1.0,))


@pytest.fixture(scope="module")
def on_random_tokens(bundled: Model) -> pd.DataFrame:
    return measure(bundled)


@pytest.fixture(scope="module")
def on_prose(bundled: Model) -> pd.DataFrame:
    return measure(bundled, reference_texts()[0])


def test_a_row_a_head_and_an_interval_beside_each_measure(on_random_tokens: pd.DataFrame) -> None:
    frame = on_random_tokens
    columns = [f"{name}{end}" for name in MEASURES for end in ("", "_low", "_high")]
    assert list(frame.columns) == ["layer", "head", *columns]
    pairs = list(zip(frame["layer"], frame["head"], strict=True))
    assert pairs == list(itertools.product(range(4), range(6)))
    assert np.isfinite(frame.to_numpy()).all()
    for name, about in MEASURES.items():
        least, largest = about.range
        assert frame[name].between(least, largest).all(), name
        assert (frame[f"{name}_low"] <= frame[name]).all()
        assert (frame[name] <= frame[f"{name}_high"]).all()


def test_measures_on_one_text_have_no_interval(on_prose: pd.DataFrame) -> None:
    for name in MEASURES:
        ends = on_prose[[f"{name}_low", f"{name}_high"]]
        assert (ends.notna() if name in ON_RANDOM_TOKENS else ends.isna()).all(axis=None), name


def test_one_seed_has_no_interval(tiny: Model) -> None:
    frame = measure(tiny, seeds=1)
    assert frame[[f"{name}_low" for name in MEASURES]].isna().all(axis=None)
    assert frame[list(MEASURES)].notna().all(axis=None)


def test_the_interval_is_that_of_the_seeds(bundled: Model, on_random_tokens: pd.DataFrame) -> None:
    """L3 H0 by hand: each seed's tokens, the pattern, and the mean by its definition."""
    found = []
    for seed in range(5):
        drawn = repeated_tokens(bundled, 64, 2, seed)
        pattern = bundled.trace_ids(drawn.ids).pattern(3, 0).astype(float)
        found.append(sum(pattern[i, i - 63] for i in range(64, 128)) / 64)
    row = at(on_random_tokens, 3, 0)
    mean, low, high = bounded_interval(np.array(found)[:, None])
    assert row["induction"] == pytest.approx(np.mean(found), abs=1e-6) == mean
    assert [row["induction_low"], row["induction_high"]] == pytest.approx([*low, *high], abs=1e-6)
    assert row["induction_high"] <= 1


def test_the_measures_of_a_text_are_those_of_its_patterns(
    bundled: Model, on_prose: pd.DataFrame
) -> None:
    trace = bundled.trace(reference_texts()[0])
    for layer, head in [(0, 1), (2, 5), (3, 4)]:
        expected, row = summary(trace.pattern(layer, head)), at(on_prose, layer, head)
        assert row["previous_token"] == expected.previous_token
        assert row["first_token"] == expected.first_token
        assert row["self"] == expected.itself
        assert row["entropy"] == expected.entropy
        assert row["distance"] == expected.distance


def test_special_tokens_count_neither_as_queries_nor_for_confidence(bundled: Model) -> None:
    trace = bundled.trace("Once upon a time<|endoftext|>there was a fox")
    (special,) = [n for n, token in enumerate(trace.details) if token.kind == "special"]
    words = [n for n in range(trace.n_tokens) if n != special]
    scores = text_scores(trace)
    for layer, head in [(0, 0), (3, 4)]:
        rows = trace.pattern(layer, head).astype(float)[words[1:]]
        assert scores["first_token"][layer, head] == pytest.approx(rows[:, 0].mean())
        assert scores["confidence"][layer, head] == pytest.approx(rows[:, words].max(1).mean())


SPECIAL_TEXT = "<|endoftext|>The king gave the ring.<|endoftext|>The queen gave"


def test_the_summary_of_a_head_is_its_profile_with_special_tokens_too(bundled: Model) -> None:
    """The Attention page and the Heads page show the same numbers for a head."""
    trace = bundled.trace(SPECIAL_TEXT)
    scores = text_scores(trace)
    queries = trace.text_queries
    for layer, head in np.ndindex(trace.n_layers, trace.n_heads):
        found = summary(trace.pattern(layer, head), queries)
        assert found.previous_token == scores["previous_token"][layer, head]
        assert found.first_token == scores["first_token"][layer, head]
        assert found.itself == scores["self"][layer, head]
        assert found.entropy == scores["entropy"][layer, head]
        assert found.distance == scores["distance"][layer, head]
    assert scores["previous_token"][0, 1] == pytest.approx(0.951, abs=5e-4)


def test_weight_on_a_special_token_is_no_confidence() -> None:
    """Four tokens, the second special: the last two queries look at it with 0.9 and 0.8."""
    weights = np.array([[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0.05, 0.9, 0.05, 0], [0.1, 0.8, 0, 0.1]])
    scores = text_scores(hand_made(weights, ("text", "special", "text", "text")))
    assert scores["confidence"][0, 0] == pytest.approx((0.05 + 0.1) / 2, abs=1e-6)
    assert scores["first_token"][0, 0] == pytest.approx((0.05 + 0.1) / 2, abs=1e-6)
    assert scores["self"][0, 0] == pytest.approx((0.05 + 0.1) / 2, abs=1e-6)
    assert scores["previous_token"][0, 0] == pytest.approx(0.9 / 2, abs=1e-6)


@pytest.mark.parametrize(("first", "expected"), [("special", 0.2), ("text", 0.75)])
def test_a_first_token_is_a_key_for_confidence_where_it_is_text(
    first: str, expected: float
) -> None:
    """Three tokens: the last two look at the first with 0.9 and 0.6, at most 0.1 and 0.3 else."""
    weights = np.array([[1, 0, 0], [0.9, 0.1, 0], [0.6, 0.3, 0.1]])
    scores = text_scores(hand_made(weights, (first, "text", "text")))
    assert scores["confidence"][0, 0] == pytest.approx(expected, abs=1e-6)
    assert scores["first_token"][0, 0] == pytest.approx(0.75, abs=1e-6)
    assert "special tokens, even at the first position" in MEASURES["confidence"].exclusions


def test_pruned_heads_are_nan_and_the_others_are_not(tiny: Model) -> None:
    frame = measure(without_heads(tiny, ((1, 3), ())), "the cat sat on the mat", seeds=2)
    removed = frame["layer"].eq(0) & frame["head"].isin([1, 3])
    assert frame.loc[removed, list(MEASURES)].isna().all(axis=None)
    assert frame.loc[~removed, ["entropy", "induction", "prefix_matching"]].notna().all(axis=None)


def test_every_step_is_reported_and_may_stop(tiny: Model) -> None:
    steps: list[tuple[int, int]] = []
    measure(tiny, "the cat", seeds=3, on_step=lambda done, total: steps.append((done, total)))
    assert steps == [(n, 14) for n in range(1, 15)], "2 layers of a text and 6 of random tokens"

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure(tiny, seeds=1, on_step=stop)


def test_inputs_that_cannot_be_measured_are_rejected(tiny: Model) -> None:
    with pytest.raises(TextError, match="empty"):
        measure(tiny, "")
    with pytest.raises(ShapeError, match="seeds = 0"):
        measure(tiny, seeds=0)


def test_measuring_changes_nothing_and_is_reproducible(tiny: Model) -> None:
    before = copy.deepcopy(tiny.network.state_dict())
    pd.testing.assert_frame_equal(measure(tiny, TEXTS[1]), measure(tiny, TEXTS[1]))
    after = tiny.network.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize(("head", "expected"), [(4, 0.99), (0, 0.95), (3, 0.93)])
def test_its_induction_heads(on_random_tokens: pd.DataFrame, head: int, expected: float) -> None:
    row = at(on_random_tokens, 3, head)
    assert row["induction"] == pytest.approx(expected, abs=0.02)
    assert row["prefix_matching"] > 0.88
    assert row["duplicate_token"] < 0.01
    others = on_random_tokens[~(on_random_tokens["layer"].eq(3))]
    assert others["induction"].max() < 0.02


@pytest.mark.parametrize(("layer", "head"), [(0, 1), (2, 5)])
def test_its_previous_token_heads(
    on_random_tokens: pd.DataFrame, on_prose: pd.DataFrame, layer: int, head: int
) -> None:
    for frame in (on_random_tokens, on_prose):
        row = at(frame, layer, head)
        assert row["previous_token"] > 0.9
        assert row["positional"] > 0.9
        assert row["syntactic_by_offset"] < 0.02, "one offset explains it whole"


def test_its_sink(on_prose: pd.DataFrame) -> None:
    row = at(on_prose, 3, 4)
    assert row["first_token"] > 0.7
    assert row["first_token"] == on_prose["first_token"].max()


def test_a_batch_is_the_mean_of_its_texts_one_by_one(bundled: Model) -> None:
    """Texts of other lengths beside it change nothing about a text: none is padded."""
    batches = list(measure_texts(bundled, TEXTS, seeds=2))
    assert [(batch.done, batch.total) for batch in batches] == [(1, 3), (2, 3), (3, 3)]
    alone = [measure(bundled, text, seeds=2) for text in TEXTS]
    pd.testing.assert_frame_equal(batches[0].frame, alone[0], check_exact=True)
    last = batches[-1].frame
    for name in ("previous_token", "entropy", "confidence", "distance"):
        values = np.stack([frame[name].to_numpy() for frame in alone])
        np.testing.assert_allclose(last[name], values.mean(axis=0), rtol=0, atol=1e-12)
        ends = (interval if name == "distance" else bounded_interval)(values)[1:]
        np.testing.assert_allclose([last[f"{name}_low"], last[f"{name}_high"]], ends, atol=1e-12)


def test_a_text_without_a_value_does_not_count_as_zero(bundled: Model) -> None:
    """One token has no query that counts."""
    *_, last = measure_texts(bundled, [" the", TEXTS[0]], seeds=1)
    alone = measure(bundled, TEXTS[0], seeds=1)
    np.testing.assert_allclose(last.frame["entropy"], alone["entropy"], rtol=0, atol=1e-12)
    assert last.frame["entropy_low"].isna().all()


def test_texts_that_are_cut_are_counted_and_read_from_their_start(tiny: Model) -> None:
    long = "the cat sat on the mat and the dog ran to the other side of a small old town, " * 3
    assert tiny.trace(long).left_out > 0
    batches = list(measure_texts(tiny, ["the cat", long, "the dog", long], seeds=1))
    assert [batch.n_truncated for batch in batches] == [0, 1, 1, 2]
    read = tiny.trace_ids(tiny.encode(long)[0][: tiny.config.n_positions])
    (alone,) = measure_texts(tiny, [long], seeds=1)
    np.testing.assert_array_equal(alone.frame["entropy"], text_scores(read)["entropy"].ravel())


def test_what_was_measured_stays_when_a_text_fails_or_the_rest_is_left(bundled: Model) -> None:
    batches = measure_texts(bundled, [TEXTS[0], "", TEXTS[1]], seeds=1)
    first = next(batches)
    with pytest.raises(TextError, match="empty"):
        next(batches)
    assert first.frame["previous_token"].notna().all()
    with pytest.raises(TextError, match="There is no text"):
        next(measure_texts(bundled, []))


def test_the_measures_by_hand_agree_with_the_table(bundled: Model, on_prose: pd.DataFrame) -> None:
    trace = bundled.trace(reference_texts()[0])
    pattern, row = trace.pattern(3, 1), at(on_prose, 3, 1)
    best = pattern[1:].argmax(axis=1)
    offsets = np.arange(1, trace.n_tokens) - best
    assert row["positional"] == np.unique(offsets, return_counts=True)[1].max() / len(offsets)
    assert row["rare_token"] == patterns.rare_token(
        patterns.targets(pattern), np.array(trace.token_ids)
    )


def test_the_model_card_names_what_is_measured(bundled: Model) -> None:
    """The induction and previous-token heads of the card are those of the Heads page."""
    card = (BUNDLED / "README.md").read_text(encoding="utf-8")
    frame = measure(bundled)
    for column, line, n in (
        ("induction", "Induction, on 64", 3),
        ("previous_token", "on the same", 2),
    ):
        rows = frame.nlargest(n, column).to_dict("records")
        said = ", ".join(f"L{r['layer']} H{r['head']} {r[column]:.2f}" for r in rows)
        (written,) = [row for row in card.splitlines() if line in row]
        assert f"| {said} |" in written
