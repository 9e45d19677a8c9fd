"""Generation: a cache changes nothing but the time, and a token is drawn as it should be."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from support.models import ours_of

from mha_viz.analysis.generation import Sampling, generate, probabilities
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


def test_a_temperature_of_nothing_takes_the_likeliest():
    assert probabilities(torch.tensor([0.0, 3.0, 1.0]), Sampling()).tolist() == [0, 1, 0]


def test_temperature_divides_the_logits():
    logits = torch.tensor([0.0, 2.0, -1.0])
    found = probabilities(logits, Sampling(temperature=0.5))
    torch.testing.assert_close(found, (2 * logits).softmax(-1), atol=1e-6, rtol=0)


def test_top_k_and_top_p_keep_the_likeliest_and_share_out_the_rest():
    logits = torch.log(torch.tensor([0.1, 0.4, 0.2, 0.3]))
    two = probabilities(logits, Sampling(temperature=1, top_k=2))
    torch.testing.assert_close(two, torch.tensor([0, 4 / 7, 0, 3 / 7]), atol=1e-6, rtol=0)
    # 0.4 alone is not 0.6; with 0.3 it is at least that.
    most = probabilities(logits, Sampling(temperature=1, top_p=0.6))
    torch.testing.assert_close(most, two, atol=1e-6, rtol=0)
    one = probabilities(logits, Sampling(temperature=1, top_p=0.01))
    assert one.tolist() == [0, 1, 0, 0]


def test_a_seed_gives_the_same_text_and_another_seed_another(tiny: Model):
    def text(seed: int) -> list[int]:
        return list(generate(tiny.network, [9], 30, sampling=Sampling(temperature=1, seed=seed)))

    assert text(1) == text(1) != text(2)


@pytest.mark.parametrize("ids", [[], [1] * 65])
def test_ids_that_do_not_fit_are_refused(tiny: Model, ids: list[int]):
    with pytest.raises(ShapeError, match="ids"):
        next(generate(tiny.network, ids, 1))


@pytest.mark.parametrize(
    "wrong", [{"temperature": -1}, {"top_k": -1}, {"top_p": 0}, {"top_p": 1.5}]
)
def test_a_sampling_that_cannot_be_is_refused(wrong: dict[str, float]):
    with pytest.raises(ShapeError, match="expected a temperature"):
        Sampling(**wrong)  # type: ignore[arg-type]
