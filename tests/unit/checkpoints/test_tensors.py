"""Tensors from every kind of file: each is read correctly, or rejected by name."""

import os
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from support.checkpoints import (
    C_ATTN,
    check_equal,
    edit_config,
    edit_tensors,
    logits_of,
    nanogpt,
    refused,
)
from support.pruning import IDS
from transformers.models.gpt2.modeling_gpt2 import (
    GPT2DoubleHeadsModel,
    GPT2ForSequenceClassification,
    GPT2Model,
)

from mha_viz.checkpoints import load, save
from mha_viz.errors import CheckpointError, SourceError
from mha_viz.model import Model
from mha_viz.pruning import pruned_model


def test_gpt2model_without_prefix_or_head(gpt2, checkpoint):
    theirs = gpt2(1)
    bare = GPT2Model(theirs.config)
    bare.load_state_dict(theirs.transformer.state_dict())
    folder = checkpoint(bare)
    assert "wte.weight" in load_file(folder / "model.safetensors")
    model = load(folder)
    check_equal(model, theirs)
    assert "The unembedding is the token embedding (tied head)." in model.description.notes


def test_an_untied_head_is_used(gpt2, checkpoint):
    theirs = gpt2(1, tie_word_embeddings=False)
    model = load(checkpoint(theirs))
    check_equal(model, theirs)
    assert "The unembedding is a tensor of its own (untied head)." in model.description.notes


def test_two_different_tensors_win_over_the_tied_flag(gpt2, checkpoint):
    theirs = gpt2(1, tie_word_embeddings=False)
    folder = edit_config(checkpoint(theirs), tie_word_embeddings=True)
    check_equal(load(folder), theirs)


def test_two_equal_tensors_are_a_tied_head(gpt2, checkpoint):
    theirs = gpt2(1)
    embedding = "transformer.wte.weight"
    folder = edit_tensors(
        checkpoint(theirs), lambda t: t.update({"lm_head.weight": t[embedding].clone()})
    )
    model = load(folder)
    check_equal(model, theirs)
    assert model.network.W_U.weight is model.network.wte.weight


def test_a_missing_head_is_rejected_where_the_model_is_untied(gpt2, checkpoint):
    folder = edit_config(checkpoint(gpt2(1)), tie_word_embeddings=False)
    assert "lacks `lm_head.weight`" in refused(folder)


def test_sharded_weights(gpt2, checkpoint, tmp_path, tokenizer):
    theirs, folder = gpt2(1), tmp_path / "shards"
    theirs.save_pretrained(folder, max_shard_size="60KB")
    tokenizer.save(str(folder / "tokenizer.json"))
    shards = sorted(folder.glob("model-*.safetensors"))
    assert len(shards) > 1
    check_equal(load(folder), theirs)
    shards[0].unlink()
    message = refused(folder, SourceError)
    assert f"lacks {shards[0].name}, one of its {len(shards)} weight files" in message


@pytest.mark.parametrize(
    ("index", "words"),
    [
        ("{", "is not a list of shards"),
        ("[]", "is not a list of shards"),
        ('{"weight_map": [1]}', "is not a list of shards"),
        ('{"weight_map": {"a": "../../etc/passwd"}}', "points outside of its folder"),
        ('{"weight_map": {}}', "lacks `transformer.wte.weight`"),
    ],
)
def test_a_damaged_index_of_shards(gpt2, checkpoint, index, words):
    folder = checkpoint(gpt2(1))
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(index)
    assert words in refused(folder)


def test_old_buffers_are_ignored(gpt2, checkpoint):
    theirs = gpt2(1)

    def add(tensors):
        for layer in range(2):
            attn = f"transformer.h.{layer}.attn"
            tensors[f"{attn}.bias"] = torch.ones(1, 1, 64, 64).tril()
            tensors[f"{attn}.masked_bias"] = torch.tensor(-1e4)

    check_equal(load(edit_tensors(checkpoint(theirs), add)), theirs)


@pytest.mark.parametrize("prefix", ["module.", "_orig_mod.", "model.", "module._orig_mod."])
def test_prefixes_of_trainers_are_understood(gpt2, checkpoint, prefix):
    theirs = gpt2(1)
    folder = edit_tensors(checkpoint(theirs), lambda t: {prefix + k: v for k, v in t.items()})
    check_equal(load(folder), theirs)


def test_a_prefix_hides_nothing_that_is_missing(gpt2, checkpoint):
    folder = edit_tensors(
        checkpoint(gpt2(1)), lambda t: {f"module.{k}": v for k, v in t.items() if k != C_ATTN}
    )
    assert f"lacks `{C_ATTN}`" in refused(folder)


@pytest.mark.parametrize(
    "missing",
    [C_ATTN, "transformer.wte.weight", "transformer.h.1.ln_2.bias", "transformer.ln_f.weight"],
)
def test_a_missing_tensor_is_rejected_by_name(gpt2, checkpoint, missing):
    message = refused(edit_tensors(checkpoint(gpt2(1)), lambda t: t.__delitem__(missing)))
    assert f"lacks `{missing}`" in message
    assert "partly random" in message


def test_a_tensor_that_gpt2_does_not_have_is_rejected_by_name(gpt2, checkpoint):
    extra = "transformer.h.0.attn.rotary.weight"
    folder = edit_tensors(checkpoint(gpt2(1)), lambda t: t.update({extra: torch.ones(3)}))
    assert f"holds `{extra}`, which GPT-2 does not have" in refused(folder)


def test_the_same_tensor_twice_is_rejected(gpt2, checkpoint):
    folder = edit_tensors(
        checkpoint(gpt2(1)), lambda t: t.update({"wte.weight": torch.zeros(300, 32)})
    )
    assert "holds `transformer.wte.weight` twice" in refused(folder)


@pytest.mark.parametrize("kind", [GPT2DoubleHeadsModel, GPT2ForSequenceClassification])
def test_the_head_of_another_task_is_left_out_and_this_is_reported(gpt2, checkpoint, kind):
    theirs = gpt2(1)
    other = kind(theirs.config)
    other.load_state_dict(theirs.state_dict(), strict=False)
    model = load(checkpoint(other))
    check_equal(model, theirs)
    assert any(note.startswith("Not loaded, because GPT-2") for note in model.description.notes)


def test_a_wrong_shape_is_named(gpt2, checkpoint):
    folder = edit_tensors(checkpoint(gpt2(1)), lambda t: t.update({C_ATTN: torch.ones(96, 32)}))
    message = refused(folder)
    assert f"`{C_ATTN}`" in message
    assert "[96, 32]" in message
    assert "[32, 96]" in message


def test_a_vocabulary_of_another_size_than_the_file_is_named(gpt2, checkpoint):
    message = refused(edit_config(checkpoint(gpt2(1)), vocab_size=301))
    assert "`transformer.wte.weight`" in message
    assert "[300, 32]" in message


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_a_weight_that_is_no_number_is_rejected_by_name(gpt2, checkpoint, value):
    folder = checkpoint(gpt2(1))
    edit_tensors(folder, lambda t: t[C_ATTN].view(-1)[7].fill_(value))
    assert f"`{C_ATTN}` of {folder} holds NaN or infinite values" in refused(folder)


def test_a_tensor_of_integers_is_rejected_by_name(gpt2, checkpoint):
    folder = edit_tensors(checkpoint(gpt2(1)), lambda t: t.update({C_ATTN: t[C_ATTN].int()}))
    message = refused(folder)
    assert C_ATTN in message
    assert "int32" in message


def test_what_transformers_pruned_before_its_version_5_is_read(
    gpt2: Callable[..., Any], checkpoint: Callable[..., Path]
):
    """It kept the remaining heads' parts of each third of c_attn and of the rows of c_proj."""
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
    edit_config(folder, pruned_heads={str(layer): heads for layer, heads in gone.items()})
    heads = [(layer, head) for layer, some in gone.items() for head in some]
    for layer, head in heads:
        theirs.transformer.h[layer].attn.c_proj.weight[head * 8 : head * 8 + 8] = 0.0
    expected = theirs(torch.tensor([IDS])).logits
    model = load(folder, device="cpu")
    assert model.config.pruned_heads == ((2,), (0, 1))
    torch.testing.assert_close(logits_of(model), expected, atol=1e-5, rtol=0)


def test_weights_that_do_not_lack_those_heads_are_rejected(tiny: Model, tmp_path: Path):
    save(pruned_model(tiny, [(0, 1)]), tmp_path)
    message = r"c_attn.*shape \[32, 72\]; .* `pruned_heads`, requires"
    with pytest.raises(CheckpointError, match=message):
        load(edit_config(tmp_path, pruned_heads={"0": [1, 2]}))


LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 548105171\n"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "model.safetensors of .* is empty. Download it again"),
        (LFS, "is a Git LFS pointer of [0-9]+ bytes, not the weights. Run `git lfs pull`"),
        (b"\x08\0\0\0\0\0\0\0{", "is truncated or damaged"),
        (b"\xff" * 100, "is truncated or damaged"),
        (b"<html>Not Found</html>", "is truncated or damaged"),
    ],
    ids=["empty", "LFS", "header", "ones", "html"],
)
def test_weights_that_are_none(gpt2, checkpoint, content, words):
    folder = checkpoint(gpt2(1))
    (folder / "model.safetensors").write_bytes(content)
    assert re.search(words, refused(folder))


@pytest.mark.parametrize("share", [0.0001, 0.01, 0.5, 0.999])
def test_a_truncated_file(gpt2, checkpoint, share):
    folder = checkpoint(gpt2(1))
    path = folder / "model.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    assert "model.safetensors" in refused(folder)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("as_file", [True, False])
def test_nanogpt(gpt2, tmp_path, tokenizer, bias, as_file):
    theirs = gpt2(1, activation_function="gelu")
    if not bias:
        for name, parameter in theirs.named_parameters():
            parameter.mul_(0.0 if name.endswith(".bias") else 1.0)
    torch.save(nanogpt(theirs, bias=bias), tmp_path / "ckpt.pt")
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    model = load(tmp_path / "ckpt.pt" if as_file else tmp_path)
    check_equal(model, theirs)
    assert model.config.n_positions == 64
    assert (
        "The file has no biases, so they were set to zero." in model.description.notes
    ) is not bias


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"model_args": None}, "is not a nanoGPT checkpoint"),
        ({"model": [1]}, "is not a nanoGPT checkpoint"),
        ({"n_head": 0}, "n_head = 0"),
        ({"n_embd": "32"}, "n_embd = '32'"),
        ({"n_head": 5}, "n_embd = 32 and n_head = 5"),
        ({"block_size": ...}, "lack `block_size`"),
        ({"n_layer": 3}, "lacks `transformer.h.2.ln_1.weight`"),
    ],
)
def test_a_damaged_nanogpt_checkpoint(gpt2, tmp_path, change, words):
    saved = nanogpt(gpt2(1))
    for key, value in change.items():
        place = saved if key in saved else saved["model_args"]
        place[key] = value
        if value is ...:
            del place[key]
    if isinstance(saved["model"], dict):
        saved["model"][5] = torch.ones(1)
    torch.save(saved, tmp_path / "ckpt.pt")
    assert words in refused(tmp_path)


class Evil:
    """Unpickling it writes a file."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return os.system, (f"echo ran > {self.marker}",)


@pytest.fixture(params=["zip", "plain"])
def evil_folder(request, gpt2, checkpoint, tmp_path) -> tuple[Path, Path]:
    """A folder whose pytorch_model.bin runs a command when it is unpickled, and what it writes."""
    folder, marker = checkpoint(gpt2(1)), tmp_path / "it_ran"
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    payload = {**tensors, "x": Evil(marker)}
    if request.param == "zip":
        torch.save(payload, folder / "pytorch_model.bin")
    else:
        (folder / "pytorch_model.bin").write_bytes(pickle.dumps(payload))
    return folder, marker


def test_a_pickle_is_not_opened(evil_folder):
    folder, marker = evil_folder
    message = refused(folder)
    assert "pytorch_model.bin" in message
    assert "safetensors" in message
    assert "allow_pickle=True" in message
    assert not marker.exists()


def test_code_in_a_pickle_never_runs(evil_folder):
    folder, marker = evil_folder
    assert "no code in it was run" in refused(folder, allow_pickle=True)
    assert not marker.exists()


def test_the_evil_pickle_does_run_elsewhere(evil_folder):
    """Otherwise the two tests above would say nothing."""
    folder, marker = evil_folder
    if (folder / "pytorch_model.bin").read_bytes()[:2] != b"PK":
        pickle.loads((folder / "pytorch_model.bin").read_bytes())
    else:
        torch.load(folder / "pytorch_model.bin", weights_only=False)
    assert marker.exists()


def test_a_plain_pickle_is_read_where_the_user_allows_it(gpt2, checkpoint):
    theirs = gpt2(1)
    folder = checkpoint(theirs)
    (folder / "model.safetensors").unlink()
    state = {name: torch.nn.Parameter(t) for name, t in theirs.state_dict().items()}
    torch.save(state, folder / "pytorch_model.bin")
    check_equal(load(folder, allow_pickle=True), theirs)
