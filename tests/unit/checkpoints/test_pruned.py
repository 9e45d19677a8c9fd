"""Pruned models on disk: read back as they were, and plain ones that transformers reads."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from support.pruning import HEADS, IDS
from transformers.models.gpt2.modeling_gpt2 import GPT2LMHeadModel

from mha_viz.checkpoints import load, save, write_zeroed
from mha_viz.errors import CheckpointError, HeadNotFound
from mha_viz.model import Model
from mha_viz.pruning import gate_without, pruned_model, size

CUTS = [[(0, 1), (1, 3), (1, 0)], [(1, h) for h in range(4)], HEADS]


def logits_of(model: Model, **given: Any) -> torch.Tensor:
    return model.network(torch.tensor([IDS]), **given)


@pytest.mark.parametrize("heads", CUTS, ids=str)
def test_a_pruned_model_is_read_back_as_it_was(tiny: Model, tmp_path: Path, heads: list):
    few = pruned_model(tiny, heads)
    save(few, tmp_path)
    back = load(tmp_path, device="cpu")
    assert back.config == few.config
    assert torch.equal(logits_of(back), logits_of(few))
    assert back.description.n_parameters == size(few.network).n_parameters
    assert f"{len(heads)} of its heads have been pruned (`pruned_heads`)." in back.description.notes
    expected = logits_of(tiny, head_gate=gate_without(tiny.config, heads))
    torch.testing.assert_close(logits_of(back), expected, atol=1e-5, rtol=0)


def test_the_configuration_names_the_heads(tiny: Model, tmp_path: Path):
    save(pruned_model(tiny, [(1, 3), (1, 0)]), tmp_path / "few")
    raw = json.loads((tmp_path / "few" / "config.json").read_text())
    assert raw["pruned_heads"] == {"1": [0, 3]}
    save(tiny, tmp_path / "whole")
    assert "pruned_heads" not in json.loads((tmp_path / "whole" / "config.json").read_text())
    sizes = [(tmp_path / n / "model.safetensors").stat().st_size for n in ("few", "whole")]
    assert sizes[1] - sizes[0] == pytest.approx(2 * 4 * (4 * 32 * 8 + 3 * 8), abs=100)


def test_untied_models_can_be_pruned_and_read_back(
    gpt2: Callable[..., Any], checkpoint: Callable[..., Path], tmp_path: Path
):
    whole = load(checkpoint(gpt2(5, tie_word_embeddings=False)), device="cpu")
    few = pruned_model(whole, CUTS[0])
    save(few, tmp_path / "few")
    assert torch.equal(logits_of(load(tmp_path / "few", device="cpu")), logits_of(few))


def test_what_transformers_pruned_before_its_version_5_is_read(
    gpt2: Callable[..., Any], checkpoint: Callable[..., Path]
):
    """It kept, of each third of c_attn and of the rows of c_proj, those of the heads that stay."""
    theirs, gone = gpt2(5), {0: [2], 1: [1, 0]}
    folder = checkpoint(theirs)
    state = {name: t.clone() for name, t in load_file(folder / "model.safetensors").items()}
    for layer, heads in gone.items():
        stay = torch.tensor([i for i in range(32) if i // 8 not in heads])
        attn = f"transformer.h.{layer}.attn"
        thirds = torch.cat([stay, stay + 32, stay + 64])
        state[f"{attn}.c_attn.weight"] = state[f"{attn}.c_attn.weight"][:, thirds]
        state[f"{attn}.c_attn.bias"] = state[f"{attn}.c_attn.bias"][thirds]
        state[f"{attn}.c_proj.weight"] = state[f"{attn}.c_proj.weight"][stay]
    save_file({k: t.contiguous() for k, t in state.items()}, folder / "model.safetensors")
    edit(folder, {str(layer): heads for layer, heads in gone.items()})
    heads = [(layer, head) for layer, some in gone.items() for head in some]
    for layer, head in heads:
        theirs.transformer.h[layer].attn.c_proj.weight[head * 8 : head * 8 + 8] = 0.0
    expected = theirs(torch.tensor([IDS])).logits
    model = load(folder, device="cpu")
    assert model.config.pruned_heads == ((2,), (0, 1))
    torch.testing.assert_close(logits_of(model), expected, atol=1e-5, rtol=0)


def edit(folder: Path, pruned_heads: object) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "pruned_heads": pruned_heads}))
    return folder


@pytest.mark.parametrize(
    "value",
    [
        [0, 1], "0", {"2": [0]}, {"-1": [0]}, {"a": [0]}, {"0": 1}, {"0": [4]}, {"0": [-1]},
        {"0": [1, 1]}, {"0": [True]}, {"0": [1.0]}, {"0": ["1"]}, {"0": None}, {"01": [1]},
    ],
    ids=str,
)  # fmt: skip
def test_pruned_heads_that_say_nothing_sound_are_refused(tiny: Model, tmp_path: Path, value: Any):
    save(tiny, tmp_path)
    with pytest.raises(CheckpointError, match=r"pruned_heads = .* expected layers from 0 to 1"):
        load(edit(tmp_path, value))


@pytest.mark.parametrize("value", [{}, {"0": []}, None], ids=str)
def test_no_pruned_heads_are_none(tiny: Model, tmp_path: Path, value: Any):
    save(tiny, tmp_path)
    assert load(edit(tmp_path, value), device="cpu").config == tiny.config


def test_weights_that_do_not_lack_those_heads_are_refused(tiny: Model, tmp_path: Path):
    save(pruned_model(tiny, [(0, 1)]), tmp_path)
    message = r"c_attn.*shape \[32, 72\]; .* `pruned_heads`, requires"
    with pytest.raises(CheckpointError, match=message):
        load(edit(tmp_path, {"0": [1, 2]}))


@pytest.mark.parametrize("heads", CUTS, ids=str)
def test_transformers_reads_a_zeroed_model_and_computes_the_same(
    tiny: Model, tmp_path: Path, heads: list
):
    write_zeroed(tiny, heads, tmp_path)
    theirs, report = GPT2LMHeadModel.from_pretrained(tmp_path, output_loading_info=True)
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    found = theirs.eval()(torch.tensor([IDS])).logits
    gate = gate_without(tiny.config, heads)
    torch.testing.assert_close(found, logits_of(tiny, head_gate=gate), atol=1e-5, rtol=0)
    few = pruned_model(tiny, heads)
    torch.testing.assert_close(found, logits_of(few), atol=1e-5, rtol=0)
    back = load(tmp_path, device="cpu")
    assert back.config == tiny.config
    torch.testing.assert_close(logits_of(back), found, atol=1e-5, rtol=0)


def test_a_pruned_model_is_zeroed_where_its_heads_were(tiny: Model, tmp_path: Path):
    few = pruned_model(tiny, [(0, 1), (1, 0)])
    write_zeroed(few, [(1, 2), (1, 0)], tmp_path)
    assert "pruned_heads" not in json.loads((tmp_path / "config.json").read_text())
    theirs = GPT2LMHeadModel.from_pretrained(tmp_path).eval()
    gate = gate_without(tiny.config, [(0, 1), (1, 0), (1, 2)])
    found = theirs(torch.tensor([IDS])).logits
    torch.testing.assert_close(found, logits_of(tiny, head_gate=gate), atol=1e-5, rtol=0)
    torch.testing.assert_close(logits_of(load(tmp_path, device="cpu")), found, atol=1e-5, rtol=0)


def test_writing_zeros_changes_nothing_of_the_model(
    gpt2: Callable[..., Any], checkpoint: Callable[..., Path], tmp_path: Path
):
    model = load(checkpoint(gpt2(5)), device="cpu")
    before = {name: t.clone() for name, t in model.network.state_dict().items()}
    write_zeroed(model, HEADS, tmp_path / "zeroed")
    assert all(torch.equal(before[n], t) for n, t in model.network.state_dict().items())
    state = load_file(tmp_path / "zeroed" / "model.safetensors")
    assert torch.equal(state["transformer.h.0.attn.c_proj.weight"], torch.zeros(32, 32))
    assert float(state["transformer.h.0.attn.c_proj.bias"].abs().max()) > 0, "b_O stays"
    with pytest.raises(HeadNotFound, match="L0 H4 is not in"):
        write_zeroed(model, [(0, 4)], tmp_path / "none")
    assert not (tmp_path / "none").exists()
