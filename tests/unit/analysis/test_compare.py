"""Two traces aligned by a diff, and how much each head changed between them."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mha_viz.analysis.compare import (
    Alignment,
    align,
    align_traces,
    aligned_patterns,
    change,
    row_change,
)
from mha_viz.errors import HeadNotFound, ShapeError
from mha_viz.heads.repeated import repeated_tokens
from mha_viz.model import Model
from mha_viz.tokens import Token
from mha_viz.trace import Trace


def sharp_trace(words: str, looks_at: Sequence[int]) -> Trace:
    """One head, whose query i looks at key looks_at[i] alone; a word is a token."""
    tokens = tuple(Token(n, word.encode(), word, "text") for n, word in enumerate(words.split()))
    T = len(tokens)
    k = np.eye(T, dtype=np.float32)[None, None]
    q = 200 * k[:, :, list(looks_at)]
    return Trace("a test", words, tokens, q, k, k.copy(), np.zeros(3, np.float32), (1.0,))


def pairs(alignment: Alignment) -> list[tuple[int, int]]:
    return list(zip(alignment.a.tolist(), alignment.b.tolist(), strict=True))


# --- alignment ------------------------------------------------------------------------------------


def test_equal_tokens_are_paired_and_others_are_not() -> None:
    assert pairs(align([1, 2, 3], [1, 9, 2, 3])) == [(0, 0), (1, 2), (2, 3)]
    assert pairs(align([1, 2, 3], [1, 5, 3])) == [(0, 0), (2, 2)]
    assert pairs(align([1, 2], [3, 4])) == []
    assert pairs(align([], [1])) == []


@given(st.lists(st.integers(0, 4), max_size=30), st.lists(st.integers(0, 4), max_size=30))
def test_pairs_hold_the_same_and_rise(a: list[int], b: list[int]) -> None:
    found = align(a, b)
    assert [a[n] for n in found.a] == [b[n] for n in found.b]
    assert (np.diff(found.a) > 0).all()
    assert (np.diff(found.b) > 0).all()
    assert len(align(a, a)) == len(a)


def test_frequent_tokens_of_a_long_text_are_paired_too() -> None:
    """difflib by itself drops what is frequent in 200 items or more."""
    ids = [7, 1] * 300
    assert len(align(ids, [5, *ids])) == 600


def test_text_that_reads_like_a_special_token_is_not_one() -> None:
    special = sharp_trace("a <|endoftext|> b", [0, 0, 0])
    tokens = [Token(t.id, t.bytes, t.label, "special" if t.id == 1 else "text")
              for t in special.details]  # fmt: skip
    other = Trace("a test", "", tuple(tokens), special.q, special.k, special.v,
                  special.logits, special.scales)  # fmt: skip
    assert pairs(align_traces(special, other)) == [(0, 0), (2, 2)]


# --- how much changed -----------------------------------------------------------------------------


def test_a_text_has_not_changed_from_itself(bundled: Model) -> None:
    trace = bundled.trace("The old king sat by the fire.")
    found = change(trace, trace)
    assert np.array_equal(found.distance, np.zeros((4, 6)))
    assert found.n_queries == trace.n_tokens - 1
    assert found.elsewhere_a.max() < 1e-6


def test_what_follows_changes_nothing_before_it(bundled: Model) -> None:
    """Because of the mask, a longer text has the same patterns over its beginning."""
    short = bundled.trace("The old king sat by the fire.")
    long = bundled.trace("The old king sat by the fire. He wept, and nobody knew why he did so.")
    found = change(short, long)
    assert found.n_queries == short.n_tokens - 1
    assert found.distance.max() < 1e-5


def test_the_distance_is_the_weight_that_moved() -> None:
    a = sharp_trace("a b c d", [0, 0, 1, 2])
    b = sharp_trace("a b c d", [0, 0, 1, 3])
    assert change(a, b).distance[0, 0] == pytest.approx(1 / 3, abs=1e-6), "one query of three"
    assert change(b, a).distance[0, 0] == pytest.approx(1 / 3, abs=1e-6)


def test_weight_on_unaligned_keys_counts_as_one_key() -> None:
    a = sharp_trace("a b x c", [0, 0, 0, 2])  # the last query looks at x
    b = sharp_trace("a b y c", [0, 0, 0, 2])  # the last query looks at y
    found = change(a, b)
    assert pairs(align_traces(a, b)) == [(0, 0), (1, 1), (3, 3)]
    assert found.n_queries == 2
    assert found.distance[0, 0] == pytest.approx(0, abs=1e-6), "what moves among those is not seen"
    assert found.elsewhere_a[0, 0] == found.elsewhere_b[0, 0] == pytest.approx(1 / 2)
    to_aligned = sharp_trace("a b y c", [0, 0, 0, 1])
    assert change(a, to_aligned).distance[0, 0] == pytest.approx(1 / 2, abs=1e-6), "c moved whole"
    assert change(a, to_aligned).elsewhere_b[0, 0] == pytest.approx(0, abs=1e-6)


def test_the_distance_by_its_definition(bundled: Model) -> None:
    a = bundled.trace("The old king sat by the fire, and he wept.")
    b = bundled.trace("The young king sat long by the fire, and wept.")
    both = align_traces(a, b)
    found = change(a, b)
    for layer, head in [(0, 1), (3, 4)]:
        A, B = a.pattern(layer, head).astype(float), b.pattern(layer, head).astype(float)
        distances = []
        for i, i_b in pairs(both):
            if i and i_b:
                x = [A[i, j] for j in both.a]
                y = [B[i_b, j] for j in both.b]
                x, y = [*x, 1 - sum(x)], [*y, 1 - sum(y)]
                distances.append(sum(abs(p - q) for p, q in zip(x, y, strict=True)) / 2)
        assert found.distance[layer, head] == pytest.approx(np.mean(distances), abs=1e-6)
        assert found.n_queries == len(distances)
    assert ((found.distance >= 0) & (found.distance <= 1)).all()


def test_two_texts_without_a_common_token_say_nothing() -> None:
    found = change(sharp_trace("a b", [0, 0]), sharp_trace("c d", [0, 0]))
    assert found.n_queries == 0
    assert np.isnan(found.distance).all()
    only_first = change(sharp_trace("a b", [0, 0]), sharp_trace("a d", [0, 0]))
    assert only_first.n_queries == 0, "the first token can only look at itself"


def test_before_and_after_removing_a_head(bundled: Model) -> None:
    """L0 H1 looks at the previous token: without it, the induction heads change most in layer 3."""
    ids = repeated_tokens(bundled, 64, 2, seed=0).ids
    gate = np.ones((4, 6), dtype=np.float32)
    gate[0, 1] = 0
    before, after = bundled.trace_ids(ids), bundled.trace_ids(ids, head_gate=gate)
    found = change(before, after).distance
    assert np.array_equal(found[0], np.zeros(6)), (
        "its own layer and those below keep their patterns"
    )
    assert found[3, [0, 3, 4]].min() > 0.4
    assert found[3, [0, 3, 4]].min() > found[3, [1, 2, 5]].max()


def test_both_heatmaps_over_what_is_aligned(bundled: Model) -> None:
    a, b = bundled.trace("The old king sat down."), bundled.trace("The king sat down again.")
    left, right = aligned_patterns(a, b, 2, 5)
    both = align_traces(a, b)
    assert left.shape == right.shape == (len(both), len(both))
    assert left[-1, 0] == a.pattern(2, 5)[both.a[-1], both.a[0]]
    assert right[-1, 0] == b.pattern(2, 5)[both.b[-1], both.b[0]]
    with pytest.raises(HeadNotFound):
        aligned_patterns(a, b, 9, 0)


def test_models_of_other_sizes_are_rejected_and_layers_reported(
    bundled: Model, tiny: Model
) -> None:
    a, b = bundled.trace("a cat"), tiny.trace("a cat")
    with pytest.raises(ShapeError, match=r"4 layers of 6 heads and .* 2 of 4"):
        change(a, b)
    reported: list[int] = []
    change(a, a, on_layer=reported.append)
    assert reported == [1, 2, 3, 4]


def test_queries_that_are_special_tokens_do_not_count(bundled: Model) -> None:
    a = bundled.trace("The king gave the ring.<|endoftext|>The queen gave")
    b = bundled.trace("A king gave the ring.<|endoftext|>The queen gave")
    pairs = align_traces(a, b)
    text = [n for n, i in enumerate(pairs.a) if i > 0 and a.details[i].kind != "special"]
    found = change(a, b)
    assert found.n_queries == len(text) == len(pairs) - 1
    keys = pairs.a, pairs.b
    left, right = (t.pattern(0, 1)[:, k] for t, k in zip((a, b), keys, strict=True))
    left, right = left[pairs.a[text]], right[pairs.b[text]]
    rest = np.abs(left.sum(axis=1) - right.sum(axis=1))
    expected = (np.abs(left - right).sum(axis=1) + rest).mean() / 2
    assert found.distance[0, 1] == pytest.approx(expected, abs=1e-6)


# --- the row of one query -------------------------------------------------------------------------


def test_the_row_of_a_query_by_its_definition(bundled: Model) -> None:
    a = bundled.trace("The old king sat by the fire, and he wept.")
    b = bundled.trace("The young king sat long by the fire, and wept.")
    both = align_traces(a, b)
    n = len(both) - 1
    found = row_change(a, b, int(both.a[n]))
    for layer in range(4):
        for head in range(6):
            x = [float(a.pattern(layer, head)[both.a[n], j]) for j in both.a]
            y = [float(b.pattern(layer, head)[both.b[n], j]) for j in both.b]
            x, y = [*x, 1 - sum(x)], [*y, 1 - sum(y)]
            expected = sum(abs(p - q) for p, q in zip(x, y, strict=True)) / 2
            assert found[layer, head] == pytest.approx(expected, abs=1e-5)


def test_a_row_that_is_not_aligned_has_no_change(bundled: Model) -> None:
    a, b = bundled.trace("The old king sat."), bundled.trace("The young king sat.")
    replaced = next(i for i in range(a.n_tokens) if i not in align_traces(a, b).a)
    assert np.isnan(row_change(a, b, replaced)).all()
    every = np.arange(a.n_tokens)
    assert np.isfinite(row_change(a, b, replaced, Alignment(every, every))).all()
