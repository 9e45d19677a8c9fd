"""One word changed: the ranking against a slow loop, on any text and any tokenizer."""

import numpy as np
import pytest

from mha_viz.analysis.minimal_pair import (
    KEPT,
    LEAST,
    WORDS,
    Swap,
    _ranked,
    minimal_pairs,
    swapped,
)
from mha_viz.app.samples import DEFAULT
from mha_viz.errors import ShapeError
from mha_viz.head import Head
from mha_viz.model import Model

TEXT = "The king gave a ring.\nThe king gave"


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max())
    return e / e.sum()


def measured(model: Model, ids: list[int], position: int, token: int) -> tuple[float, float]:
    """The largest change of the last row over all heads, and that of the prediction, one by one."""
    a, b = model.trace_ids(ids), model.trace_ids(swapped(ids, position, token))
    rows = [
        np.abs(a.pattern(layer, head)[-1] - b.pattern(layer, head)[-1]).sum() / 2
        for layer in range(a.n_layers)
        for head in range(a.n_heads)
    ]
    change = np.abs(softmax(a.logits) - softmax(b.logits)).sum() / 2
    return float(np.nanmax(rows)), float(change)


def test_each_swap_has_the_changes_that_a_slow_loop_finds(bundled: Model) -> None:
    ids = bundled.trace(TEXT).token_ids
    pairs = minimal_pairs(bundled, ids, len(ids) - 1)
    assert pairs.tried == pairs.possible
    assert len(pairs.swaps) == KEPT
    for swap in pairs.swaps[:6]:
        row, prediction = measured(bundled, ids, swap.position, swap.token)
        assert (swap.row, swap.prediction) == pytest.approx((row, prediction), abs=1e-4)
        trace, other = (
            bundled.trace_ids(ids),
            bundled.trace_ids(swapped(ids, swap.position, swap.token)),
        )
        moved = np.abs(trace.pattern(*swap.head)[-1] - other.pattern(*swap.head)[-1]).sum() / 2
        assert moved == pytest.approx(swap.row, abs=1e-4)


def test_no_swap_of_the_same_kind_changes_more_than_the_first(bundled: Model) -> None:
    """Every word of the list that is one token, at every place of a short text."""
    ids = bundled.trace("The king gave a").token_ids
    query = len(ids) - 1
    pairs = minimal_pairs(bundled, ids, query)
    first = pairs.swaps[0]
    best = 0.0
    for position in range(query):
        for word in WORDS:
            new = bundled.encode(f" {word}")[0]
            if len(new) == 1 and new[0] != ids[position] and position:
                best = max(best, sum(measured(bundled, ids, position, new[0])))
    assert first.size >= best / 2
    same = [swap.size for swap in pairs.swaps if swap.plain == first.plain]
    assert first.size == max(same)


def test_a_plain_swap_comes_first_only_if_it_changes_half_as_much_as_the_best() -> None:
    def swap(size: float, plain: int) -> Swap:
        return Swap(0, round(1000 * size), size, Head(0, 0), 0.0, plain)

    best, enough, little = swap(0.8, 2), swap(0.41, 0), swap(0.39, 0)
    assert _ranked([best, little]) == (best, little)
    assert _ranked([best, little, enough]) == (enough, best, little)


def test_the_default_text_changes_a_word_by_one_of_its_kind(bundled: Model) -> None:
    trace = bundled.trace(DEFAULT)
    pairs = minimal_pairs(bundled, trace.token_ids, trace.n_tokens - 1)
    first = pairs.swaps[0]
    assert first.plain == 0
    assert first.row > 0.5
    assert first.prediction > 0.5
    assert pairs == minimal_pairs(bundled, trace.token_ids, trace.n_tokens - 1)


def test_the_query_and_what_follows_it_stay(bundled: Model) -> None:
    ids = bundled.trace(TEXT).token_ids
    pairs = minimal_pairs(bundled, ids, 3)
    assert {swap.position for swap in pairs.swaps} <= {0, 1, 2}
    assert minimal_pairs(bundled, ids[:4], 3) == pairs


def test_one_token_has_no_pair_and_a_query_outside_is_refused(bundled: Model) -> None:
    assert minimal_pairs(bundled, [5], 0).swaps == ()
    assert minimal_pairs(bundled, [5, 6, 7], 0).possible == 0
    with pytest.raises(ShapeError, match="positions 0 to 2"):
        minimal_pairs(bundled, [5, 6, 7], 3)


def test_a_long_text_is_bounded_and_says_how_many_were_tried(bundled: Model) -> None:
    ids = bundled.trace("The king gave a ring to the girl. " * 200).token_ids
    reported: list[float] = []
    pairs = minimal_pairs(bundled, ids, 1023, multiply_adds=1, on_progress=reported.append)
    assert (len(ids), pairs.tried) == (1024, LEAST)
    assert pairs.possible > 10_000
    assert len(pairs.swaps) == LEAST
    assert reported[-1] == 1


def test_words_that_are_several_tokens_are_left_out(tiny: Model) -> None:
    ids = tiny.trace("the cat sat on").token_ids
    pairs = minimal_pairs(tiny, ids, len(ids) - 1)
    for swap in pairs.swaps:
        text = tiny.text_of([swap.token])
        assert text.strip().lower() in {word.lower() for word in WORDS}
        assert tiny.encode(text)[0] == [swap.token]


def test_a_special_token_is_never_replaced(bundled: Model) -> None:
    ids = bundled.trace("The king.<|endoftext|>The king").token_ids
    special = [t.kind == "special" for t in bundled.read(ids)].index(True)
    assert special not in {s.position for s in minimal_pairs(bundled, ids, len(ids) - 1).swaps}
