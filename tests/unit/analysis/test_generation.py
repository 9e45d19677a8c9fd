"""Generation: a cache changes only the time, and tokens follow the sampling distribution."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from support.models import ours_of
from torch import Tensor
from transformers.generation.logits_process import (
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from mha_viz.analysis.generation import Sampling, filtered, generate, probabilities
from mha_viz.errors import ShapeError
from mha_viz.lessons.grouped_query import grouped_gpt2
from mha_viz.model import Model


@pytest.mark.parametrize("n_kv_heads", [4, 2, 1])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_with_and_without_a_cache_the_tokens_are_the_same(
    tiny: Model, n_kv_heads: int, temperature: float
):
    network = grouped_gpt2(tiny.network, n_kv_heads)
    sampling = Sampling(temperature=temperature, seed=3)
    ids = [5, 17, 201, 5]
    plain = list(generate(network, ids, 40, sampling=sampling, cached=False))
    assert list(generate(network, ids, 40, sampling=sampling)) == plain
    assert len(plain) == 40


def test_greedy_generation_equals_transformers(gpt2: Callable[..., Any]):
    theirs = gpt2(5)
    ids = [5, 17, 201, 5]
    expected = theirs.generate(
        torch.tensor([ids]), max_new_tokens=20, do_sample=False, pad_token_id=0, eos_token_id=None
    )
    assert list(generate(ours_of(theirs), ids, 20)) == expected[0, len(ids) :].tolist()


def test_generation_ends_where_the_positions_do(tiny: Model):
    assert len(list(generate(tiny.network, [1] * 60, 100))) == 4
    assert list(generate(tiny.network, [1] * 64, 5)) == []


def test_a_temperature_of_zero_takes_the_most_likely_token():
    assert probabilities(torch.tensor([0.0, 3.0, 1.0]), Sampling()).tolist() == [0, 1, 0]


def test_temperature_divides_the_logits():
    logits = torch.tensor([0.0, 2.0, -1.0])
    found = probabilities(logits, Sampling(temperature=0.5))
    torch.testing.assert_close(found, (2 * logits.double()).softmax(-1), atol=1e-6, rtol=0)


def test_top_k_and_top_p_keep_the_most_likely_and_renormalise():
    logits = torch.log(torch.tensor([0.1, 0.4, 0.2, 0.3]))
    two = probabilities(logits, Sampling(temperature=1, top_k=2))
    expected = torch.tensor([0, 4 / 7, 0, 3 / 7], dtype=torch.float64)
    torch.testing.assert_close(two, expected, atol=1e-6, rtol=0)
    # 0.4 alone is not 0.6; with 0.3 it is at least that.
    most = probabilities(logits, Sampling(temperature=1, top_p=0.6))
    torch.testing.assert_close(most, two, atol=1e-6, rtol=0)
    one = probabilities(logits, Sampling(temperature=1, top_p=0.01))
    assert one.tolist() == [0, 1, 0, 0]


def their_filters(logits: Tensor, sampling: Sampling) -> Tensor:
    """The logits `[V]` after transformers' own processors, in float64; -inf for removed tokens."""
    ids, scores = torch.zeros(1, 1, dtype=torch.long), logits.double()[None]
    scores = TemperatureLogitsWarper(sampling.temperature)(ids, scores)
    if sampling.top_k:
        scores = TopKLogitsWarper(sampling.top_k)(ids, scores)
    if sampling.top_p < 1:  # as in their `generate`
        scores = TopPLogitsWarper(sampling.top_p)(ids, scores)
    return scores[0]


@pytest.mark.parametrize("temperature", [0.05, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("top_k", [0, 1, 7, 5000])
def test_the_filters_are_those_of_transformers(temperature: float, top_k: int):
    generator = torch.Generator().manual_seed(top_k)
    for top_p in (1e-6, 0.3, 0.5, 0.9, 0.99, 0.999999, 1.0):
        for spread in (0.1, 3.0, 12.0):
            logits = spread * torch.randn(4096, generator=generator)
            sampling = Sampling(temperature=temperature, top_k=top_k, top_p=top_p)
            theirs = their_filters(logits, sampling)
            assert torch.equal(filtered(logits, sampling), theirs)
            found = probabilities(logits, sampling)
            torch.testing.assert_close(found, theirs.softmax(-1), atol=1e-12, rtol=1e-9)


@pytest.mark.parametrize("temperature", [0.01, 0.5, 1.0])
def test_a_top_p_of_1_keeps_the_whole_vocabulary(bundled: Model, temperature: float):
    sampling = Sampling(temperature=temperature, top_p=1.0)
    for text in ("The king gave the princess a golden ring.", "Once upon a time", "\n"):
        logits = torch.tensor(bundled.trace(text).logits)
        assert int((probabilities(logits, sampling) > 0).sum()) == len(logits) == 4096


def test_a_seed_gives_the_same_text_and_another_seed_another(tiny: Model):
    def text(seed: int) -> list[int]:
        return list(generate(tiny.network, [9], 30, sampling=Sampling(temperature=1, seed=seed)))

    assert text(1) == text(1) != text(2)


@pytest.mark.parametrize("ids", [[], [1] * 65])
def test_ids_that_do_not_fit_are_rejected(tiny: Model, ids: list[int]):
    with pytest.raises(ShapeError, match="ids"):
        next(generate(tiny.network, ids, 1))


@pytest.mark.parametrize(
    "wrong", [{"temperature": -1}, {"top_k": -1}, {"top_p": 0}, {"top_p": 1.5}]
)
def test_impossible_sampling_settings_are_rejected(wrong: dict[str, float]):
    with pytest.raises(ShapeError, match="expected a temperature"):
        Sampling(**wrong)  # type: ignore[arg-type]
