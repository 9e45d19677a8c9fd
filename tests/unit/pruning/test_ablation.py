"""Removing heads: equal to transformers with hooks or zeroed rows, and nothing else is touched."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from statistics import median
from typing import Any

import numpy as np
import pytest
import torch
from support.models import everything, fingerprint, trace_of
from support.pruning import D_H, HEADS, IDS, OTHER_IDS, H, L, model_of
from tokenizers import Tokenizer
from torch.nn import functional as F

from mha_viz import pruning
from mha_viz.errors import HeadNotFound, MhaVizError, ShapeError, TextError
from mha_viz.lessons.grouped_query import grouped_gpt2
from mha_viz.model import Model
from mha_viz.pruning import (
    ZERO,
    Pass,
    Replacement,
    ablate_each_head,
    ablation,
    passes,
    replacements,
)


@pytest.fixture
def model(gpt2: Callable[..., Any], tokenizer: Tokenizer) -> Model:
    return model_of(gpt2(5), tokenizer)


@contextmanager
def hooked(theirs: Any, heads: list[tuple[int, int]], value: Any) -> Iterator[None]:
    """transformers' model with `value(layer, head)` in place of what these heads give c_proj."""
    handles = []
    for layer, block in enumerate(theirs.transformer.h):
        ablated = [head for at, head in heads if at == layer]

        def replace(module: Any, inputs: Any, layer: int = layer, ablated: Any = ablated) -> Any:
            x = inputs[0].clone()
            d_h = x.shape[-1] // theirs.config.n_head
            for head in ablated:
                x[..., head * d_h : (head + 1) * d_h] = value(layer, head)
            return (x,)

        handles.append(block.attn.c_proj.register_forward_pre_hook(replace))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def their_loss(theirs: Any, ids: list[int], heads: Any = (), value: Any = lambda *_: 0.0) -> float:
    with torch.inference_mode(), hooked(theirs, list(heads), value):
        logits = theirs(torch.tensor([ids])).logits[0]
    return float(F.cross_entropy(logits[:-1], torch.tensor(ids[1:])))


# --- every head alone -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"tie_word_embeddings": False},
        {"scale_attn_by_inverse_layer_idx": True, "n_layer": 3},
        {"n_head": 1},
    ],
    ids=str,
)
def test_every_head_alone_equals_a_loop_with_hooks_on_transformers(
    gpt2: Callable[..., Any], tokenizer: Tokenizer, changes: dict
):
    theirs = gpt2(5, **changes)
    found = ablate_each_head(model_of(theirs, tokenizer), IDS)
    whole = their_loss(theirs, IDS)
    assert found.shape == (theirs.config.n_layer, theirs.config.n_head)
    assert np.abs(found).max() > 1e-2, "the heads matter"
    for layer, head in np.ndindex(found.shape):
        expected = their_loss(theirs, IDS, [(layer, head)]) - whole
        assert found[layer, head] == pytest.approx(expected, abs=1e-5)


def test_every_head_alone_equals_zeroed_rows_of_c_proj(
    gpt2: Callable[..., Any], tokenizer: Tokenizer
):
    theirs = gpt2(5)
    found = ablate_each_head(model_of(theirs, tokenizer), IDS)
    whole = their_loss(theirs, IDS)
    for layer, head in HEADS:
        cut = gpt2(5)
        cut.transformer.h[layer].attn.c_proj.weight[head * D_H : (head + 1) * D_H] = 0.0
        assert found[layer, head] == pytest.approx(their_loss(cut, IDS) - whole, abs=1e-5)


def test_a_text_and_its_ids_give_the_same(tiny: Model):
    text = "the cat sat on the mat"
    ids = tiny.encode(text)[0]
    expected = ablate_each_head(tiny, text)
    assert np.array_equal(ablate_each_head(tiny, ids), expected)
    assert np.array_equal(ablate_each_head(tiny, np.array(ids)), expected)
    assert np.array_equal(ablate_each_head(tiny, torch.tensor(ids)), expected)


@pytest.mark.parametrize("batch", [1, 50, 10**6])
def test_how_many_heads_run_at_once_changes_nothing(
    model: Model, monkeypatch: pytest.MonkeyPatch, batch: int
):
    expected = ablate_each_head(model, IDS)
    monkeypatch.setattr(ablation, "BATCH", batch)
    np.testing.assert_allclose(ablate_each_head(model, IDS), expected, atol=1e-6)


@pytest.mark.parametrize("size", [1, 77, 300, 10**6])
def test_the_parts_of_the_vocabulary_change_nothing(
    model: Model, monkeypatch: pytest.MonkeyPatch, size: int
):
    logits = model.network(torch.tensor([IDS]))[0]
    monkeypatch.setattr(passes, "VOCABULARY_PART", size)
    one = Pass.of(model, IDS)
    expected = F.cross_entropy(logits[:-1], torch.tensor(IDS[1:]), reduction="none")
    np.testing.assert_allclose(one.losses(), expected.numpy(), atol=1e-5)
    assert torch.equal(one.best_tokens(), logits.argmax(-1))
    assert one.loss == pytest.approx(float(expected.mean()), abs=1e-6)
    assert np.array_equal(pruning.losses(model, IDS), one.losses())


@pytest.mark.parametrize("method", ["zero", "mean"])
def test_a_head_beside_others_that_are_ablated(
    gpt2: Callable[..., Any], tokenizer: Tokenizer, method: Any
):
    theirs, removed = gpt2(5), [(0, 1), (1, 0)]
    model = model_of(theirs, tokenizer)
    replacement = pruning.make_replacement(model, method, len(IDS), [OTHER_IDS])
    z = torch.zeros(L, H, D_H) if replacement.z is None else replacement.z[:, :, 0]
    gate = pruning.gate_without(model.config, removed)
    found = ablate_each_head(model, IDS, method=replacement, gate=gate)
    before = their_loss(theirs, IDS, removed, lambda *head: z[head])
    for head in HEADS:
        if head in removed:
            assert np.isnan(found[head])
        else:
            expected = their_loss(theirs, IDS, [*removed, head], lambda *head: z[head]) - before
            assert found[head] == pytest.approx(expected, abs=1e-5)


def test_the_loss_may_be_that_of_the_end_alone(model: Model):
    whole = Pass.of(model, IDS)
    found = ablate_each_head(model, IDS, first=10)
    for head in HEADS:
        expected = (whole.without([head]).losses()[9:] - whole.losses()[9:]).mean()
        assert found[head] == pytest.approx(expected, abs=1e-5)


def test_heads_that_share_keys_and_values_are_removed_one_by_one(model: Model):
    few = Model(grouped_gpt2(model.network, 2), model.tokenizer, model.description)
    found, whole = ablate_each_head(few, IDS), Pass.of(few, IDS)
    for head in HEADS:
        gate = pruning.gate_without(few.config, [head])
        logits = few.network(torch.tensor([IDS]), head_gate=gate)[0]
        loss = F.cross_entropy(logits[:-1], torch.tensor(IDS[1:]))
        assert found[head] == pytest.approx(float(loss) - whole.loss, abs=1e-5)


# --- what stands in for a head --------------------------------------------------------------------


def their_z(theirs: Any, windows: torch.Tensor) -> torch.Tensor:
    """`[L, N, T, H, d_h]`: what c_proj is given on these windows."""
    kept: list[torch.Tensor] = []
    handles = [
        block.attn.c_proj.register_forward_pre_hook(lambda _, inputs: kept.append(inputs[0]))
        for block in theirs.transformer.h
    ]
    theirs(windows)
    for handle in handles:
        handle.remove()
    return torch.stack(kept).unflatten(-1, (theirs.config.n_head, -1))


@pytest.mark.parametrize("method", ["mean", "position-wise mean", "resample"])
def test_a_replaced_head_equals_a_hook_with_what_transformers_gives(
    gpt2: Callable[..., Any], tokenizer: Tokenizer, method: Any
):
    theirs = gpt2(5)
    model = model_of(theirs, tokenizer)
    replacement = pruning.make_replacement(model, method, 24, [OTHER_IDS, IDS], seed=2)
    z = their_z(theirs, torch.tensor((OTHER_IDS + IDS)[: 3 * 24]).view(3, 24))
    expected = {"mean": z.mean((1, 2)), "position-wise mean": z.mean(1), "resample": z[:, 0]}[
        method
    ]

    def value(layer: int, head: int) -> torch.Tensor:
        return expected[layer][..., head, :]

    found, whole = ablate_each_head(model, IDS, method=replacement), their_loss(theirs, IDS)
    for head in HEADS:
        assert found[head] == pytest.approx(
            their_loss(theirs, IDS, [head], value) - whole, abs=1e-5
        )
    both = Pass.of(model, IDS).without([(0, 2), (1, 3)], replacement).loss
    assert both == pytest.approx(their_loss(theirs, IDS, [(0, 2), (1, 3)], value), abs=1e-5)


def test_the_ways_to_remove_a_head_differ(tiny: Model):
    text = "the dog ran to the other side of a small old town"
    found = [ablate_each_head(tiny, text, method=method) for method in pruning.METHODS]
    for i, one in enumerate(found):
        assert all(np.abs(one - other).max() > 1e-3 for other in found[:i])


def test_a_replacement_equal_to_z_costs_nothing(model: Model):
    """Resampled from the same text, at the same positions, a head is replaced by itself."""
    replacement = pruning.make_replacement(model, "resample", len(IDS), [IDS])
    np.testing.assert_allclose(ablate_each_head(model, IDS, method=replacement), 0.0, atol=1e-6)


def test_how_many_windows_run_at_once_changes_no_mean(
    model: Model, monkeypatch: pytest.MonkeyPatch
):
    reported: list[float] = []
    a = pruning.make_replacement(
        model, "position-wise mean", 10, [OTHER_IDS], on_progress=reported.append
    )
    monkeypatch.setattr(replacements, "BATCH", 20)
    b = pruning.make_replacement(
        model, "position-wise mean", 10, [OTHER_IDS], on_progress=reported.append
    )
    assert reported == pytest.approx([1.0, 1 / 3, 2 / 3, 1.0])
    torch.testing.assert_close(a.z, b.z, atol=1e-6, rtol=0)


def test_at_most_so_many_tokens_of_the_reference_are_read(model: Model):
    all_of_it = pruning.make_replacement(model, "mean", 10, [OTHER_IDS])
    some = pruning.make_replacement(model, "mean", 10, [OTHER_IDS], max_tokens=29)
    same = pruning.make_replacement(model, "mean", 10, [OTHER_IDS[:20]])
    assert torch.equal(some.z, same.z)
    assert not torch.equal(some.z, all_of_it.z)


# --- one pass, changed again and again ------------------------------------------------------------


@pytest.mark.parametrize("method", pruning.METHODS)
def test_removing_nothing_changes_no_bit(tiny: Model, method: Any):
    replacement = pruning.make_replacement(tiny, method, len(IDS), [OTHER_IDS])
    whole = Pass.of(tiny, IDS)
    logits = tiny.network(torch.tensor([IDS]))
    for same in (
        whole,
        whole.without([], replacement),
        whole.without(HEADS, replacement).without([], replacement),
        Pass.of(tiny, IDS, gate=np.ones((L, H)), replacement=replacement),
    ):
        assert all(map(torch.equal, same.resid, whole.resid))
        assert torch.equal(tiny.network.unembed(same.resid[-1]), logits)
        assert np.array_equal(same.losses(), whole.losses())
    assert np.array_equal(pruning.divergence(whole, whole.without([])), np.zeros(len(IDS)))
    assert np.array_equal(pruning.pattern_change(whole, whole.without([])), np.zeros((L, H)))


def test_the_order_of_toggles_does_not_matter(bundled: Model):
    text = "Once upon a time there was a king who had a daughter."
    heads = [(3, 4), (0, 1), (2, 5), (0, 2)]
    replacement = pruning.make_replacement(bundled, "mean", 64)
    for chosen in (ZERO, replacement):
        gate = pruning.gate_without(bundled.config, heads)
        fresh = Pass.of(bundled, text, gate=gate, replacement=chosen)
        for order in (heads, heads[::-1], [heads[i] for i in (2, 0, 3, 1)]):
            one, removed = Pass.of(bundled, text), []
            for head in [*order, (1, 1)]:  # the last one goes, and comes back
                removed.append(head)
                one = one.without(removed, chosen)
            one = one.without(order, chosen)
            assert all(map(torch.equal, one.resid, fresh.resid))


def test_layers_below_a_change_are_not_run_again(bundled: Model):
    whole = Pass.of(bundled, "Once upon a time")
    changed = whole.without([(2, 1)])
    assert [a is b for a, b in zip(whole.resid, changed.resid, strict=True)] == [
        True, True, True, False, False,
    ]  # fmt: skip
    back = changed.without([(2, 1), (3, 0)])
    assert back.resid[3] is changed.resid[3]
    replacement = pruning.make_replacement(bundled, "mean", 64)
    assert whole.without([], replacement).resid[-1] is whole.resid[-1]
    assert changed.without([(2, 1)], replacement).resid[3] is not changed.resid[3]


def test_a_gate_between_one_and_zero_is_that_of_the_network(model: Model):
    gate = torch.rand(L, H, generator=torch.Generator().manual_seed(1))
    one = Pass.of(model, IDS, gate=gate)
    logits = model.network(torch.tensor([IDS]), head_gate=gate)
    assert torch.equal(model.network.unembed(one.resid[-1]), logits)
    gate.zero_()
    assert float(one.gate.max()) > 0, "what is kept does not change with what was given"


def test_a_toggle_takes_at_most_150_ms(bundled: Model):
    text = "Once upon a time there was a king who had a daughter, and she was fair. " * 5
    ids = bundled.encode(text)[0][:64]
    assert len(ids) == 64
    whole, taken = Pass.of(bundled, ids), []
    for head in range(6):
        begun = time.process_time()
        one = whole.without([(0, head)])
        one.losses(), pruning.next_tokens(whole, one), pruning.divergence(whole, one)
        pruning.pattern_change(whole, one)
        taken.append(time.process_time() - begun)
    assert median(taken) <= 0.150


# --- what it did to the text ----------------------------------------------------------------------


def test_next_tokens_before_and_after(model: Model):
    whole = Pass.of(model, IDS)
    one = whole.without([(1, 1), (0, 0)])
    gate = pruning.gate_without(model.config, [(1, 1), (0, 0)])
    p = model.network(torch.tensor([IDS]))[0, -1].softmax(-1)
    q = model.network(torch.tensor([IDS]), head_gate=gate)[0, -1].softmax(-1)
    found = pruning.next_tokens(whole, one, 5, also=[7, int(p.argmax())])
    ids = [candidate.id for candidate in found]
    assert ids[:5] == p.topk(5).indices.tolist()
    assert set(q.topk(5).indices.tolist()) <= set(ids)
    assert 7 in ids
    assert len(ids) == len(set(ids))
    for candidate in found:
        assert candidate.before == pytest.approx(float(p[candidate.id]), abs=1e-6)
        assert candidate.after == pytest.approx(float(q[candidate.id]), abs=1e-6)
        assert candidate.rank_before == int((p > p[candidate.id]).sum()) + 1
        assert candidate.rank_after == int((q > q[candidate.id]).sum()) + 1


def test_the_divergence_is_that_of_the_distributions(model: Model):
    ids = OTHER_IDS + OTHER_IDS[:4]
    whole = Pass.of(model, ids)
    gate = pruning.gate_without(model.config, [(0, 3)])
    p = model.network(torch.tensor([ids]))[0].double().softmax(-1)
    q = model.network(torch.tensor([ids]), head_gate=gate)[0].double().softmax(-1)
    expected = (p * (p / q).log()).sum(-1).numpy()
    found = pruning.divergence(whole, whole.without([(0, 3)]))
    assert expected.max() > 0.1
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_the_change_of_patterns_is_that_of_two_traces(model: Model):
    ids = torch.tensor([IDS])
    gate = pruning.gate_without(model.config, [(0, 3)])
    a = trace_of(model.network.run(ids), model.config)
    b = trace_of(model.network.run(ids, head_gate=gate), model.config)
    whole = Pass.of(model, IDS)
    found = pruning.pattern_change(whole, whole.without([(0, 3)]))
    for layer, head in HEADS:
        apart = np.abs(a.pattern(layer, head) - b.pattern(layer, head))[1:].sum(1) / 2
        assert found[layer, head] == pytest.approx(apart.mean(), abs=1e-6)
    assert np.all(found[0] == 0)
    assert np.all(found[1] > 0)
    assert np.all(found <= 1)


# --- nobody else sees it --------------------------------------------------------------------------


def test_after_an_exception_the_model_is_as_it_was(tiny: Model):
    parts, before = everything(tiny.network), fingerprint(tiny.network)

    def stop(share: float) -> None:
        raise KeyboardInterrupt(f"after {share}")

    jobs: list[Callable[[], Any]] = [
        lambda: ablate_each_head(tiny, IDS, on_progress=stop),
        lambda: pruning.gradient_importance(tiny, IDS, on_progress=stop),
        lambda: pruning.make_replacement(tiny, "mean", 8, [OTHER_IDS], on_progress=stop),
        lambda: next(pruning.order(tiny, [IDS], "greedy", on_progress=stop)),
        lambda: Pass.of(tiny, IDS).without([(9, 9)]),
        lambda: list(pruning.curve(tiny, [IDS], [(0, 0), (0, 9)])),
        lambda: pruning.prune(tiny, [(0, 1), (7, 7)]),
    ]
    for job in jobs:
        with pytest.raises((KeyboardInterrupt, MhaVizError)):
            job()
    ablate_each_head(tiny, IDS), pruning.gradient_importance(tiny, IDS), pruning.prune(tiny, HEADS)
    assert everything(tiny.network) == parts, "no hook, no attribute, no mode, no gradient"
    assert fingerprint(tiny.network) == before
    assert not any(p.requires_grad or p.grad is not None for p in tiny.network.parameters())


def test_threads_with_other_gates_do_not_see_each_other(tiny: Model):
    generator = torch.Generator().manual_seed(2)
    gates = [torch.rand(L, H, generator=generator).round() for _ in range(8)]

    def work(gate: torch.Tensor) -> list[Any]:
        return [
            (Pass.of(tiny, IDS, gate=gate).losses(), pruning.gradient_importance(tiny, IDS))
            for _ in range(10)
        ]

    alone = [work(gate)[0] for gate in gates]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(work, gates))
    for (losses, gradient), runs in zip(alone, together, strict=True):
        for again, also in runs:
            assert np.array_equal(again, losses)
            assert np.array_equal(also, gradient)


def test_progress_is_reported_layer_by_layer(tiny: Model):
    reported: list[float] = []
    ablate_each_head(tiny, IDS, on_progress=reported.append)
    assert reported == [0.5, 1.0]


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("t", "The text has 1 token. The loss measures how well each next token is predicted"),
        ([5], "The text has 1 token"),
        ([], "The text has no tokens"),
        ("", "The text is empty"),
        ([1] * 65, "There are 65 token ids; .* reads from 1 to 64 at once. Shorten the text"),
        ([0, 300], "from 0 to 300; .* ids 0 to 299"),
        ([-1, 5], "from -1 to 5"),
        ([0.5, 1.5], "is neither a text nor a list of token ids"),
        (None, "None is neither a text nor a list"),
    ],
)
def test_a_text_that_has_no_loss_is_refused(tiny: Model, text: Any, words: str):
    for job in (ablate_each_head, pruning.losses, Pass.of):
        with pytest.raises(TextError, match=words):
            job(tiny, text)


def test_an_input_that_does_not_fit_is_refused_with_its_shape(tiny: Model):
    jobs: list[tuple[Callable[[], Any], type[Exception], str]] = [
        (lambda: Pass.of(tiny, IDS, gate=torch.ones(4)), ShapeError, r"\[4\]; .* \[2, 4\]"),
        (lambda: ablate_each_head(tiny, IDS, first=24), ShapeError, "positions 1 to 23"),
        (lambda: ablate_each_head(tiny, IDS, method="median"), ShapeError, "'median'; .* zero"),
        (
            lambda: Pass.of(tiny, IDS).without(
                [(0, 0)], pruning.make_replacement(tiny, "resample", 8, [IDS])
            ),
            ShapeError,
            "has 8 positions and the text has 24",
        ),
        (lambda: pruning.make_replacement(tiny, "mean", 65), ShapeError, "length = 65; .* 2 to 64"),
        (
            lambda: pruning.make_replacement(tiny, "mean", 24, [IDS[:9]]),
            TextError,
            "9 tokens. .* of 24 tokens it needs",
        ),
        (lambda: pruning.make_replacement(tiny, "mean", 24, []), TextError, "There is no text"),
        (lambda: Pass.of(tiny, IDS).without([(2, 0)]), HeadNotFound, "L2 H0 is not in this model"),
        (lambda: Pass.of(tiny, IDS).without([(0, -1)]), HeadNotFound, "heads from 0 to 3"),
        (
            lambda: pruning.next_tokens(Pass.of(tiny, IDS), Pass.of(tiny, OTHER_IDS)),
            ShapeError,
            "Compare two passes of one text",
        ),
        (
            lambda: pruning.next_tokens(Pass.of(tiny, IDS), Pass.of(tiny, IDS), also=[300]),
            TextError,
            "There is no token 300",
        ),
        (lambda: pruning.chunks(tiny, ["t", [3]], 8), TextError, "None of the texts"),
    ]
    for job, kind, words in jobs:
        with pytest.raises(kind, match=words):
            job()


def test_long_texts_are_cut_into_chunks_that_all_have_a_loss(tiny: Model):
    assert pruning.chunks(tiny, [IDS, OTHER_IDS[:17]], 8) == [
        IDS[:8], IDS[8:16], IDS[16:], OTHER_IDS[:8], OTHER_IDS[8:16],
    ]  # fmt: skip
    for alone in (IDS, [IDS], np.array(IDS), [np.array(IDS)], torch.tensor([IDS])):
        assert pruning.chunks(tiny, alone, 64) == [IDS]


def test_a_replacement_is_a_value(tiny: Model):
    with pytest.raises(AttributeError):
        Replacement().method = "mean"  # type: ignore[misc]
