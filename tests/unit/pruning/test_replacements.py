"""Replacement values for ablated heads, checked with hooks on transformers."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from support.pruning import HEADS, IDS, OTHER_IDS, model_of, their_loss
from tokenizers import Tokenizer

from mha_viz import pruning
from mha_viz.model import Model
from mha_viz.pruning import (
    Pass,
    Replacement,
    ablate_each_head,
    replacements,
)


def their_z(theirs: Any, windows: torch.Tensor) -> torch.Tensor:
    """`[L, N, T, H, d_h]`: the input of c_proj on these windows."""
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


def test_the_ablation_types_differ(tiny: Model):
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


def test_a_replacement_is_a_value(tiny: Model):
    with pytest.raises(AttributeError):
        Replacement().method = "mean"  # type: ignore[misc]


def test_draws_are_different_windows(model: Model):
    """As many as asked for, or as there are; one where nothing is drawn."""
    texts = [OTHER_IDS, IDS]
    n_windows = len(OTHER_IDS + IDS) // 8
    several = pruning.draws(model, "resample", 8, texts, n=3)
    assert len(several) == 3
    values = [one.z for one in several if one.z is not None]
    assert all(not torch.equal(a, b) for a, b in itertools.combinations(values, 2))
    assert len(pruning.draws(model, "resample", 8, texts, n=100)) == n_windows
    assert len(pruning.draws(model, "mean", 8, texts)) == 1
    assert pruning.draws(model, "zero", 8, texts) == [pruning.ZERO]
