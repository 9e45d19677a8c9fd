"""Repeated random tokens: ordinary, seeded, and within the model's positions."""

from dataclasses import replace

import pytest

from mha_viz.errors import ShapeError
from mha_viz.gpt2 import GPT2
from mha_viz.heads.repeated import FOUR_TIMES, TWICE, repeated_tokens
from mha_viz.model import Model


@pytest.mark.parametrize(("period", "copies"), [TWICE, FOUR_TIMES])
def test_random_tokens_repeat_exactly_and_are_ordinary(
    bundled: Model, period: int, copies: int
) -> None:
    drawn = repeated_tokens(bundled, period, copies, seed=3)
    once = drawn.ids[:period]
    assert drawn.period == period
    assert drawn.ids == once * copies
    assert len(set(once)) == period, "no token twice within one copy"
    assert all(token.kind == "text" and token.bytes for token in bundled.read(list(once)))


def test_seeds_differ_and_each_draws_the_same_again(bundled: Model) -> None:
    draws = [repeated_tokens(bundled, *TWICE, seed=seed).ids for seed in range(4)]
    assert len(set(draws)) == 4
    assert draws[2] == repeated_tokens(bundled, *TWICE, seed=2).ids


def test_special_tokens_and_parts_of_characters_are_never_drawn(tiny: Model) -> None:
    """Requests all of the 300 ids, of which 128 are bytes beyond ASCII and one is special."""
    long = replace(tiny, network=GPT2(replace(tiny.config, n_positions=1024)))
    drawn = repeated_tokens(long, 1000, 1, seed=0)
    assert drawn.period == 300 - 128 - 1
    assert all(token.kind == "text" for token in tiny.read(list(drawn.ids)))


def test_a_model_of_few_positions_gets_a_shorter_period(tiny: Model) -> None:
    assert tiny.config.n_positions == 64
    assert repeated_tokens(tiny, *TWICE, seed=0).period == 32
    assert repeated_tokens(tiny, *FOUR_TIMES, seed=0).period == 16
    with pytest.raises(ShapeError, match="period = 0"):
        repeated_tokens(tiny, 0, 2, seed=0)
