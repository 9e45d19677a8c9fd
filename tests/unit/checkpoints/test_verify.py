"""The comparison with transformers catches a mistake that no shape shows, also in threads."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from support.checkpoints import check_equal, refused
from torch import Tensor

from mha_viz import checkpoints
from mha_viz.checkpoints import load, names, verify
from mha_viz.errors import CheckpointError


def swap_q_and_k(ours: dict[str, Tensor]) -> None:
    q, k, v = ours["blocks.0.attn.W_QKV.weight"].chunk(3)
    ours["blocks.0.attn.W_QKV.weight"] = torch.cat([k, q, v])


def transpose_c_proj(ours: dict[str, Tensor]) -> None:
    ours["blocks.1.attn.W_O.weight"] = ours["blocks.1.attn.W_O.weight"].T.contiguous()


def break_a_norm(ours: dict[str, Tensor]) -> None:
    ours["ln_f.weight"] = ours["ln_f.weight"] * torch.nan


@pytest.mark.parametrize("mistake", [swap_q_and_k, transpose_c_proj, break_a_norm])
def test_a_mistake_that_no_shape_shows_is_caught(gpt2, checkpoint, monkeypatch, mistake):
    original = names.adopt

    def adopt(state, config):
        network = original(state, config)
        ours = network.state_dict()
        mistake(ours)
        network.load_state_dict(ours, assign=True)
        return network

    folder = checkpoint(gpt2(1))
    assert load(folder)
    monkeypatch.setattr(checkpoints, "adopt", adopt)
    assert "its outputs here differ from transformers'" in refused(folder)


def test_a_nan_in_the_patterns_alone_is_no_agreement(gpt2, checkpoint, monkeypatch):
    theirs = gpt2(1)
    network = load(checkpoint(theirs)).network
    original = theirs.forward

    def forward(*args, **kwargs):
        out = original(*args, **kwargs)
        out.attentions[-1][0, 0, 0, 0] = torch.nan
        return out

    theirs.forward = forward
    with pytest.raises(CheckpointError, match="its outputs here differ"):
        verify.compare(network, theirs, "a test")


def test_models_that_are_loaded_at_the_same_time_are_all_whole(gpt2, checkpoint):
    """transformers is not made for threads: without a lock, models lose weights, and later ones."""
    folders = [checkpoint(gpt2(seed), f"model{seed}") for seed in range(4)]
    with ThreadPoolExecutor(len(folders)) as pool:
        models = list(pool.map(load, folders * 5))
    for number, model in enumerate(models):
        check_equal(model, gpt2(number % 4))


def test_a_configuration_that_transformers_refuses_has_a_note(gpt2):
    raw = gpt2(1).config.to_dict()
    assert verify.config_notes(raw) == []
    (note,) = verify.config_notes({**raw, "num_labels": "x"})
    assert note.startswith("transformers cannot read its config.json ('str' object cannot")
