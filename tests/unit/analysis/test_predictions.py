"""Predictions checked against transformers: at every position, layer by layer, step by step.

Probabilities agree to 1e-5 and losses to 1e-4 nats: two programs in float32, on a random model.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from support.models import random_gpt2

from mha_viz.analysis import predictions
from mha_viz.analysis.generation import Sampling, generate
from mha_viz.analysis.predictions import (
    Predictions,
    Step,
    attention_row,
    continue_text,
    join,
    lens,
    predict,
    score_continuation,
)
from mha_viz.errors import HeadNotFound, ShapeError, TextError
from mha_viz.lessons.grouped_query import grouped_gpt2
from mha_viz.model import Model
from mha_viz.pruning import pruned_model

IDS = np.random.default_rng(3).integers(0, 300, 23).tolist()
SAMPLING = Sampling(temperature=0.7, top_k=9, top_p=0.8, seed=5)


@pytest.fixture(scope="module")
def theirs() -> Any:
    """The model that `tiny` was made of, in transformers."""
    return random_gpt2(7)


@torch.inference_mode()
def their_log_p(theirs: Any, ids: list[int]) -> torch.Tensor:
    """Of every token after every position, `[T, V]`."""
    found: torch.Tensor = theirs(torch.tensor([ids])).logits[0].log_softmax(-1)
    return found


def test_predictions_are_those_of_transformers(tiny: Model, theirs: Any) -> None:
    log_p = their_log_p(theirs, IDS)
    found = join(list(predict(tiny, IDS, 6)))
    best = log_p.topk(6)
    assert found.ids.tolist() == best.indices.tolist()
    np.testing.assert_allclose(found.probabilities, best.values.exp(), atol=1e-5)
    np.testing.assert_array_equal(found.p_final, found.probabilities[:, 0])


def test_the_token_that_follows_has_its_loss_its_probability_and_its_rank(
    tiny: Model, theirs: Any
) -> None:
    log_p = their_log_p(theirs, IDS)
    found = join(list(predict(tiny, IDS)))
    for i, after in enumerate(IDS[1:]):
        assert found.losses[i] == pytest.approx(-float(log_p[i, after]), abs=1e-4)
        assert found.p_actual[i] == pytest.approx(float(log_p[i, after].exp()), abs=1e-5)
        order = log_p[i].argsort(descending=True).tolist()
        assert found.ranks[i] == order.index(after) + 1
    assert np.isnan(found.losses[-1])
    assert np.isnan(found.p_actual[-1])
    assert found.ranks[-1] == 0, "nothing follows the last token"


def test_blocks_of_positions_join_to_the_full_result(
    tiny: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = join(list(predict(tiny, IDS)))
    monkeypatch.setattr(predictions, "POSITIONS", 5)
    blocks = list(predict(tiny, IDS))
    assert [len(block.ids) for block in blocks] == [5, 5, 5, 5, 3]
    np.testing.assert_array_equal(join(blocks).ids, whole.ids)
    np.testing.assert_allclose(join(blocks).losses, whole.losses, atol=1e-5)


def test_the_lens_is_the_last_norm_and_the_unembedding_after_each_block(
    tiny: Model, theirs: Any
) -> None:
    """Against the hidden states of transformers; its last ones have been through ln_f already."""
    layers = list(lens(tiny, IDS, k=4))
    with torch.inference_mode():
        states = theirs(torch.tensor([IDS]), output_hidden_states=True).hidden_states
        for layer, state in zip(layers, states, strict=True):
            normed = state if state is states[-1] else theirs.transformer.ln_f(state)
            log_p = theirs.lm_head(normed)[0].log_softmax(-1)
            best = log_p.topk(4)
            assert layer.ids.tolist() == best.indices.tolist()
            np.testing.assert_allclose(layer.probabilities, best.values.exp(), atol=1e-5)
            said = log_p[range(len(IDS) - 1), IDS[1:]]
            np.testing.assert_allclose(layer.losses[:-1], -said, atol=1e-4)


def test_after_the_last_layer_the_lens_is_the_models_prediction(tiny: Model, theirs: Any) -> None:
    last = list(lens(tiny, IDS))[-1]
    model = join(list(predict(tiny, IDS, 5)))
    np.testing.assert_array_equal(last.ids, model.ids)
    np.testing.assert_allclose(last.probabilities, model.probabilities, atol=1e-6)
    np.testing.assert_array_equal(last.p_final, last.probabilities[:, 0])


def test_each_layer_shows_the_probability_of_the_final_token(tiny: Model) -> None:
    layers = list(lens(tiny, IDS, k=300))
    final = layers[-1].ids[:, 0]
    for layer in layers:
        at = (layer.ids == final[:, None]).argmax(axis=1)
        wanted = layer.probabilities[range(len(IDS)), at]
        np.testing.assert_allclose(layer.p_final, wanted, atol=1e-6)


def test_some_positions_give_the_same_as_all(tiny: Model) -> None:
    whole = list(lens(tiny, IDS))
    for part, all_of_it in zip(lens(tiny, IDS, range(7, 12)), whole, strict=True):
        np.testing.assert_array_equal(part.ids, all_of_it.ids[7:12])
        np.testing.assert_allclose(part.losses, all_of_it.losses[7:12], atol=1e-5)


@pytest.mark.parametrize("sampling", [Sampling(), SAMPLING, Sampling(1.0)])
def test_a_continuation_equals_generation_and_is_reproducible(
    tiny: Model, sampling: Sampling
) -> None:
    made = [step.token for step in continue_text(tiny, IDS, 20, sampling=sampling)]
    assert made == list(generate(tiny.network, IDS, 20, sampling=sampling, cached=False))
    assert made == [step.token for step in continue_text(tiny, IDS, 20, sampling=sampling)]


def test_another_seed_is_another_text(tiny: Model) -> None:
    texts = {
        tuple(
            step.token for step in continue_text(tiny, IDS, 12, sampling=Sampling(1.0, seed=seed))
        )
        for seed in range(4)
    }
    assert len(texts) == 4


def test_each_step_predicts_what_transformers_predicts(tiny: Model, theirs: Any) -> None:
    steps = list(continue_text(tiny, IDS, 10, sampling=SAMPLING))
    log_p = their_log_p(theirs, [*IDS, *(step.token for step in steps)])
    for step in steps:
        said = log_p[step.position - 1]
        assert step.loss == pytest.approx(-float(said[step.token]), abs=1e-4)
        assert step.rank == said.argsort(descending=True).tolist().index(step.token) + 1
        np.testing.assert_allclose(step.p_model, said[step.ids].exp(), atol=1e-5)


def test_what_the_filters_leave_is_worked_out_by_hand(tiny: Model, theirs: Any) -> None:
    """Temperature, then the 9 most likely, then the fewest of them that hold 0.8 (nucleus)."""
    step = next(continue_text(tiny, IDS, 1, sampling=SAMPLING, n_candidates=12))
    said = their_log_p(theirs, IDS)[-1].double()
    share = np.sort(torch.softmax(said / 0.7, 0).numpy())[::-1][:9]
    share /= share.sum()
    n = int(np.argmax(share.cumsum() >= 0.8)) + 1
    assert 1 < n < 9, "both filters take something away"
    assert step.n_possible == n
    np.testing.assert_allclose(step.p_sampling[:n], share[:n] / share[:n].sum(), atol=1e-5)
    assert not step.p_sampling[n:12].any()
    assert step.p_sampling[step.ids.tolist().index(step.token)] > 0


def test_a_token_outside_the_candidates_follows_them(tiny: Model) -> None:
    most_likely = next(continue_text(tiny, IDS, 1, n_candidates=300)).ids.tolist()
    step = next(score_continuation(tiny, IDS, [most_likely[-1]], n_candidates=8))
    assert step.ids.tolist() == [*most_likely[:8], most_likely[-1]]
    assert step.rank == 300


def test_the_probabilities_of_a_given_continuation_multiply_to_that_of_the_text(
    tiny: Model, theirs: Any
) -> None:
    given = [5, 299, 17, 5, 120]
    steps = list(score_continuation(tiny, IDS, given))
    log_p = their_log_p(theirs, [*IDS, *given]).double()
    places = range(len(IDS) - 1, len(IDS) + len(given) - 1)
    whole = float(sum(log_p[i, token] for i, token in zip(places, given, strict=True)))
    assert sum(step.loss for step in steps) == pytest.approx(-whole, abs=1e-3)
    product = np.prod([step.probability for step in steps], dtype=np.float64)
    assert product == pytest.approx(np.exp(whole), rel=1e-3)
    for step in steps:
        np.testing.assert_array_equal(step.p_sampling, step.p_model, "nothing was filtered")


def test_a_step_has_the_row_of_the_full_pattern(tiny: Model) -> None:
    """A row of a causal pattern stays as it is when more tokens follow. To 1e-5."""
    steps = list(continue_text(tiny, IDS, 6, sampling=SAMPLING))
    trace = tiny.trace_ids([*IDS, *(step.token for step in steps)])
    for step in steps:
        for layer in range(2):
            for head in range(4):
                row = trace.pattern(layer, head)[step.position - 1]
                found = attention_row(tiny, step, layer, head)
                np.testing.assert_allclose(found, row[: step.position], atol=1e-5)
                assert found.sum() == pytest.approx(1, abs=1e-5)


def test_pruned_heads_look_nowhere_and_the_others_keep_their_places(tiny: Model) -> None:
    model = pruned_model(tiny, [(0, 1)])
    step = next(continue_text(model, IDS, 1))
    row = model.trace_ids(IDS).pattern(0, 2)[-1]
    np.testing.assert_allclose(attention_row(model, step, 0, 2), row, atol=1e-5)
    with pytest.raises(HeadNotFound, match="L0 H1"):
        attention_row(model, step, 0, 1)


def test_query_heads_that_share_keys_read_the_ones_of_their_group(tiny: Model) -> None:
    model = replace(tiny, network=grouped_gpt2(tiny.network, 2))
    step = next(continue_text(model, IDS, 1))
    trace = model.trace_ids(IDS)
    for head in range(4):
        row = trace.pattern(1, head)[-1]
        np.testing.assert_allclose(attention_row(model, step, 1, head), row, atol=1e-5)


def test_the_end_of_the_positions_ends_the_text(tiny: Model) -> None:
    ids = IDS * 3
    assert len(list(continue_text(tiny, ids[:60], 20))) == 4
    assert len(list(score_continuation(tiny, ids[:60], [1] * 20))) == 4
    assert list(continue_text(tiny, ids[:64], 20)) == []


def test_progress_is_reported_before_anything_is_known_and_may_stop_it(tiny: Model) -> None:
    for work in (
        lambda reported: predict(tiny, IDS, on_progress=reported),
        lambda reported: lens(tiny, IDS, on_progress=reported),
        lambda reported: continue_text(tiny, IDS, 3, on_progress=reported),
    ):
        shares: list[float] = []
        list(work(shares.append))
        assert shares == [0.5, 1.0]

        def stop(share: float) -> None:
            raise InterruptedError

        with pytest.raises(InterruptedError):
            list(work(stop))


def test_what_cannot_be_done_is_reported(tiny: Model) -> None:
    with pytest.raises(TextError, match="65 token ids"):
        next(predict(tiny, [1] * 65))
    with pytest.raises(TextError, match="0 token ids"):
        continue_text(tiny, [], 3)
    with pytest.raises(ShapeError, match="301 tokens"):
        next(lens(tiny, IDS, k=301))
    with pytest.raises(ShapeError, match="20 to 23"):
        next(lens(tiny, IDS, range(20, 24)))
    with pytest.raises(ShapeError, match="at least one"):
        join([])


def test_a_single_token_has_an_expectation_and_no_loss(tiny: Model) -> None:
    found: Predictions = join(list(predict(tiny, [4])))
    assert found.ids.shape == (1, 10)
    assert np.isnan(found.losses).all()
    step: Step = next(continue_text(tiny, [4], 1))
    assert attention_row(tiny, step, 0, 0).tolist() == [1.0]
