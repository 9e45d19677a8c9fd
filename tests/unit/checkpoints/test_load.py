"""Checkpoints of every kind: those that are read are read right, those that are not say why."""

import json
import os
import pickle
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import Tensor
from transformers.models.gpt2.modeling_gpt2 import (
    GPT2DoubleHeadsModel,
    GPT2ForSequenceClassification,
    GPT2LMHeadModel,
    GPT2Model,
)
from transformers.models.gpt2.tokenization_gpt2 import GPT2Tokenizer

from mha_viz import checkpoints
from mha_viz.checkpoints import hub, load, names, save, verify
from mha_viz.errors import CheckpointError, MhaVizError, NotGPT2, SourceError
from mha_viz.model import Model

TEXT = "the dog sat on the other side of the mat"
C_ATTN = "transformer.h.0.attn.c_attn.weight"
NOT_FOR_PEOPLE = re.compile(r"Traceback|\b[A-Z]\w+(Error|Exception)\b|<class|0x[0-9a-f]{6}|\n")


def theirs_on(model: Model, theirs: Any, text: str = TEXT) -> tuple[np.ndarray, list[np.ndarray]]:
    """Their logits at the last position, and their patterns, a layer each."""
    ids = torch.tensor([model.encode(text)[0]])
    with torch.inference_mode():
        out = theirs(ids, output_attentions=True)
    return out.logits[0, -1].numpy(), [a[0].numpy() for a in out.attentions]


def check_equal(model: Model, theirs: Any) -> None:
    """Logits within 1e-5 and patterns within 1e-6 of transformers in eager mode."""
    trace = model.trace(TEXT)
    logits, patterns = theirs_on(model, theirs)
    np.testing.assert_allclose(trace.logits, logits, rtol=0, atol=1e-5)
    assert len(patterns) == trace.n_layers
    for layer, expected in enumerate(patterns):
        np.testing.assert_allclose(trace.patterns(layer), expected, rtol=0, atol=1e-6)


def refused(source: str | Path, kind: type[MhaVizError] = CheckpointError, **options: Any) -> str:
    """The message of the refusal, which is made for a person."""
    with pytest.raises(kind) as caught:
        load(source, **options)
    return readable(caught.value)


def readable(error: MhaVizError) -> str:
    message = str(error)
    assert not NOT_FOR_PEOPLE.search(message), message
    assert len(message) < 600
    return message


def edit_config(folder: Path, **changes: Any) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return folder


def edit_tensors(folder: Path, change: Callable[[dict[str, Tensor]], Any]) -> Path:
    """Rewrites the weights; `change` works on the dict of tensors, or returns another one."""
    path = folder / "model.safetensors"
    tensors = {name: tensor.clone() for name, tensor in load_file(path).items()}
    changed = change(tensors)
    save_file(changed if isinstance(changed, dict) else tensors, path)
    return folder


# --- what is read ---------------------------------------------------------------------------------


def test_a_plain_checkpoint(gpt2, checkpoint):
    theirs = gpt2(1)
    model = load(checkpoint(theirs))
    check_equal(model, theirs)
    about = model.description
    assert about.source == "folder"
    assert about.stored_dtype == "float32"
    assert about.n_parameters == sum(p.numel() for p in theirs.parameters())
    assert re.fullmatch("[0-9a-f]{64}", about.weights_hash)
    assert "tied head" in " ".join(about.notes)


def test_a_folder_may_be_a_string(gpt2, checkpoint, monkeypatch):
    folder = checkpoint(gpt2(1), "mine")
    monkeypatch.chdir(folder.parent)
    for source in ("./mine", str(folder), Path("mine"), "../" + folder.parent.name + "/mine"):
        assert load(source).config.n_layers == 2


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


def test_a_missing_head_is_refused_where_the_model_is_untied(gpt2, checkpoint):
    folder = edit_config(checkpoint(gpt2(1)), tie_word_embeddings=False)
    assert "lacks `lm_head.weight`" in refused(folder)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_files_are_computed_in_float32(gpt2, checkpoint, dtype):
    folder = checkpoint(gpt2(1).to(dtype))
    model = load(folder, device="cpu")
    theirs = GPT2LMHeadModel.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager"
    )
    check_equal(model, theirs)
    assert model.network.wte.weight.dtype == torch.float32
    assert model.description.stored_dtype == str(dtype).removeprefix("torch.")


def test_the_hash_does_not_depend_on_how_a_file_is_stored(gpt2, checkpoint):
    theirs = gpt2(1).half().float()
    whole = load(checkpoint(theirs, "whole")).description.weights_hash
    assert load(checkpoint(theirs.half(), "half")).description.weights_hash == whole
    assert load(checkpoint(gpt2(2), "other")).description.weights_hash != whole


def test_sharded_weights(gpt2, checkpoint, tmp_path, tokenizer):
    theirs, folder = gpt2(1), tmp_path / "shards"
    theirs.save_pretrained(folder, max_shard_size="60KB")
    tokenizer.save(str(folder / "tokenizer.json"))
    shards = sorted(folder.glob("model-*.safetensors"))
    assert len(shards) > 1
    check_equal(load(folder), theirs)
    shards[0].unlink()
    message = refused(folder, SourceError)
    assert f"lacks {shards[0].name}, one of the {len(shards)} files" in message


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


@pytest.mark.parametrize(
    "flags",
    [
        {"scale_attn_weights": False, "n_head": 8},
        {"scale_attn_by_inverse_layer_idx": True},
        {"reorder_and_upcast_attn": True},
        {"scale_attn_by_inverse_layer_idx": True, "reorder_and_upcast_attn": True},
        {"n_inner": 48},
        {"activation_function": "gelu"},
        {"activation_function": "gelu_new"},
        {"activation_function": "gelu_pytorch_tanh"},
        {"activation_function": "relu"},
        {"activation_function": "silu"},
        {"activation_function": "swish"},
        {"activation_function": "tanh"},
        {"layer_norm_epsilon": 1e-12},
        {"n_positions": 128},
        {"n_positions": 2048},
        {"vocab_size": 50304},
    ],
    ids=str,
)
def test_the_numbers_of_the_configuration_are_followed(gpt2, checkpoint, flags):
    theirs = gpt2(1, **flags)
    model = load(checkpoint(theirs))
    check_equal(model, theirs)
    for key, ours in (("n_positions", "n_positions"), ("vocab_size", "vocab_size")):
        assert getattr(model.config, ours) == getattr(theirs.config, key)
    assert model.config.layer_norm_epsilon == theirs.config.layer_norm_epsilon


def test_the_names_that_other_models_use_for_the_sizes(gpt2, checkpoint):
    theirs = gpt2(1)
    folder = checkpoint(theirs)
    raw = json.loads((folder / "config.json").read_text())
    for key, alias in (("n_embd", "hidden_size"), ("n_head", "num_attention_heads")):
        raw[alias] = raw.pop(key)
    (folder / "config.json").write_text(json.dumps(raw))
    check_equal(load(folder), theirs)
    message = refused(edit_config(folder, n_head=2))
    assert "n_head = 2; num_attention_heads is 4, but both must be equal" in message


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
def test_a_missing_tensor_is_refused_by_name(gpt2, checkpoint, missing):
    message = refused(edit_tensors(checkpoint(gpt2(1)), lambda t: t.__delitem__(missing)))
    assert f"lacks `{missing}`" in message
    assert "partly random" in message


def test_a_tensor_that_gpt2_does_not_have_is_refused_by_name(gpt2, checkpoint):
    extra = "transformer.h.0.attn.rotary.weight"
    folder = edit_tensors(checkpoint(gpt2(1)), lambda t: t.update({extra: torch.ones(3)}))
    assert f"holds `{extra}`, which GPT-2 does not have" in refused(folder)


def test_the_same_tensor_twice_is_refused(gpt2, checkpoint):
    folder = edit_tensors(
        checkpoint(gpt2(1)), lambda t: t.update({"wte.weight": torch.zeros(300, 32)})
    )
    assert "holds `transformer.wte.weight` twice" in refused(folder)


@pytest.mark.parametrize("kind", [GPT2DoubleHeadsModel, GPT2ForSequenceClassification])
def test_the_head_of_another_task_is_left_out_and_this_is_said(gpt2, checkpoint, kind):
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


# --- the parity check of the loader ---------------------------------------------------------------


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


# --- nanoGPT --------------------------------------------------------------------------------------


def nanogpt(theirs: Any, *, bias: bool = True, prefix: str = "_orig_mod.") -> dict[str, Any]:
    """What nanoGPT's train.py saves: nn.Linear layout, block_size, its own attention mask."""
    state = {}
    for key, tensor in theirs.state_dict().items():
        linear = re.search(r"(c_attn|c_proj|c_fc)\.weight$", key)
        if bias or not key.endswith(".bias"):
            state[prefix + key] = tensor.T.contiguous() if linear else tensor
    state[f"{prefix}transformer.h.0.attn.bias"] = torch.ones(1, 1, 64, 64)
    sizes = {key: getattr(theirs.config, key) for key in ("n_layer", "n_head", "n_embd")}
    args = sizes | {"block_size": 64, "vocab_size": 300, "bias": bias, "dropout": 0.0}
    return {"model": state, "model_args": args, "optimizer": {}, "iter_num": 7, "config": {}}


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
    assert ("The file has no biases; they are zero." in model.description.notes) is not bias


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


# --- pickles --------------------------------------------------------------------------------------


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


# --- what is refused by its configuration ---------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"pruned_heads": {"0": [1, 2]}}, "pruned_heads"),
        ({"quantization_config": {"load_in_4bit": True}}, "quantization_config"),
        ({"add_cross_attention": True}, "add_cross_attention"),
        ({"activation_function": "mish"}, "activation_function = 'mish'; expected one of gelu_new"),
        ({"activation_function": 3}, "activation_function = 3"),
        ({"n_head": 0}, "n_head = 0; expected a whole number"),
        ({"n_head": -4}, "n_head = -4"),
        ({"n_head": True}, "n_head = True"),
        ({"n_head": 5}, "n_embd = 32 and n_head = 5"),
        ({"n_layer": "2"}, "n_layer = '2'; expected a whole number"),
        ({"n_layer": 2.0}, "n_layer = 2.0"),
        ({"n_layer": 2**24}, "n_layer = 16777216; expected a whole number from 1 to 1,024"),
        ({"n_embd": [32]}, "n_embd = [32]"),
        ({"n_inner": 0}, "n_inner = 0"),
        ({"n_positions": 0}, "n_positions = 0"),
        ({"vocab_size": 2**30}, "vocab_size = 1073741824"),
        ({"layer_norm_epsilon": "1e-5"}, "layer_norm_epsilon = '1e-5'"),
        ({"layer_norm_epsilon": -1}, "layer_norm_epsilon = -1"),
        ({"layer_norm_epsilon": float("nan")}, "layer_norm_epsilon = nan"),
        ({"scale_attn_weights": "no"}, "scale_attn_weights = 'no'; expected true or false"),
        ({"scale_attn_by_inverse_layer_idx": 1}, "scale_attn_by_inverse_layer_idx = 1"),
    ],
    ids=str,
)
def test_a_configuration_that_cannot_be_followed(gpt2, checkpoint, changes, words):
    message = refused(edit_config(checkpoint(gpt2(1)), **changes))
    assert words in message
    assert "model" in message


@pytest.mark.parametrize(
    ("model_type", "words"),
    [
        ("llama", "This checkpoint is a `llama` model"),
        ("bert", "This checkpoint is a `bert` model"),
        ("gpt_neo", "This checkpoint is a `gpt_neo` model"),
        (None, "has no `model_type`"),
        (7, "This checkpoint is a `7` model"),
    ],
)
def test_another_architecture_is_named_with_what_is_read(gpt2, checkpoint, model_type, words):
    message = refused(edit_config(checkpoint(gpt2(1)), model_type=model_type), NotGPT2)
    assert words in message
    assert "gpt2" in message


def test_an_adapter_is_refused(gpt2, checkpoint):
    folder = checkpoint(gpt2(1))
    (folder / "adapter_config.json").write_text("{}")
    message = refused(folder)
    assert "adapter_config.json" in message
    assert "Merge it" in message


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is not valid JSON"),
        (b"{", "is not valid JSON"),
        (b"\xff\xfe\x00", "is not valid JSON"),
        (b"[" * 100_000, "is not valid JSON"),
        (b"[1, 2]", "is not a JSON object"),
        (b"null", "is not a JSON object"),
        (b'"gpt2"', "is not a JSON object"),
        (b"{}", "has no `model_type`"),
    ],
    ids=lambda value: str(value)[:12],
)
def test_a_config_that_is_no_configuration(gpt2, checkpoint, content, words):
    folder = checkpoint(gpt2(1))
    (folder / "config.json").write_bytes(content)
    assert words in refused(folder)


def test_settings_of_transformers_that_do_not_matter_do_not_matter(gpt2, checkpoint):
    theirs = gpt2(1)
    extra = {"return_dict": False, "output_attentions": False, "torch_dtype": "float16"}
    check_equal(load(edit_config(checkpoint(theirs), **extra)), theirs)


# --- files that are not there, or not whole -------------------------------------------------------


@pytest.mark.parametrize("source", ["./nowhere", "~/nowhere/at/all", "~nobody_has_this_name/x"])
def test_a_folder_that_is_not_there(source):
    assert f"There is no folder {source}" in refused(source, SourceError)


@pytest.mark.parametrize("source", ["./a\0b", "./" + "x" * 300, Path("x" * 300)], ids=repr)
def test_a_path_that_no_system_takes(source):
    assert "Check the path" in refused(source, SourceError)


def test_a_folder_without_a_config(tmp_path):
    message = refused(tmp_path, SourceError)
    assert "has no config.json" in message
    (tmp_path / "config.json").mkdir()
    assert "has no config.json" in refused(tmp_path, SourceError)


def test_a_folder_without_weights(gpt2, checkpoint):
    folder = checkpoint(gpt2(1))
    (folder / "model.safetensors").unlink()
    assert "has no weights: expected model.safetensors" in refused(folder, SourceError)


def test_a_single_file_names_what_to_give(gpt2, checkpoint):
    message = refused(checkpoint(gpt2(1)) / "model.safetensors")
    assert "is a single file. Give the folder" in message


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


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_a_weight_that_is_no_number_is_refused_by_name(gpt2, checkpoint, value):
    folder = checkpoint(gpt2(1))
    edit_tensors(folder, lambda t: t[C_ATTN].view(-1)[7].fill_(value))
    assert f"`{C_ATTN}` of {folder} holds NaN or infinite values" in refused(folder)


def test_a_tensor_of_integers_is_refused_by_name(gpt2, checkpoint):
    folder = edit_tensors(checkpoint(gpt2(1)), lambda t: t.update({C_ATTN: t[C_ATTN].int()}))
    message = refused(folder)
    assert C_ATTN in message
    assert "int32" in message


def test_a_file_that_changes_later_changes_no_model(gpt2, checkpoint):
    """safetensors maps a file into memory; a copy is what a model is made of."""
    theirs = gpt2(1)
    folder = checkpoint(theirs)
    model = load(folder)
    path = folder / "model.safetensors"
    with path.open("r+b") as file:
        file.write(b"\0" * path.stat().st_size)
    check_equal(model, theirs)


# --- tokenizers -----------------------------------------------------------------------------------


def test_a_tokenizer_of_vocab_and_merges(gpt2, checkpoint, tokenizer):
    folder = checkpoint(gpt2(1), words=False)
    tokenizer.model.save(str(folder))
    vocabulary = json.loads((folder / "vocab.json").read_text()) | {"<|endoftext|>": 299}
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    model = load(folder)
    assert model.trace(TEXT).token_ids == tokenizer.encode(TEXT).ids
    assert [t.kind for t in model.trace("a<|endoftext|>").details] == ["text", "special"]


def test_a_missing_tokenizer_offers_gpt2s_own_where_it_fits(gpt2, checkpoint):
    folder = checkpoint(gpt2(1, vocab_size=50257), words=False)
    message = refused(folder, SourceError)
    assert "has no tokenizer: expected tokenizer.json, or vocab.json and merges.txt" in message
    assert 'tokenizer="gpt2"' in message


def test_a_missing_tokenizer_offers_nothing_where_nothing_fits(gpt2, checkpoint):
    message = refused(checkpoint(gpt2(1), words=False), SourceError)
    assert "has no tokenizer" in message
    assert "300 is not GPT-2's" in message
    assert 'tokenizer="gpt2"' not in message


def test_another_tokenizer_can_be_named(gpt2, checkpoint, tmp_path, tokenizer, monkeypatch):
    folder = checkpoint(gpt2(1), words=False)
    other = tmp_path / "words"
    other.mkdir()
    tokenizer.save(str(other / "tokenizer.json"))
    expected = tokenizer.encode(TEXT).ids
    assert load(folder, tokenizer=other).trace(TEXT).token_ids == expected
    monkeypatch.setattr(hub, "fetch_tokenizer", lambda name: {"gpt2": other}[name])
    assert load(folder, tokenizer="gpt2").trace(TEXT).token_ids == expected
    assert "has no tokenizer" in refused(folder, SourceError, tokenizer=tmp_path / "nowhere")


def test_ids_beyond_the_vocabulary_are_refused(gpt2, checkpoint):
    message = refused(checkpoint(gpt2(1, vocab_size=299)))
    assert "ids up to 299, but the model has 299 tokens" in message


def test_a_vocabulary_with_room_to_spare_is_fine(gpt2, checkpoint):
    assert load(checkpoint(gpt2(1, vocab_size=320))).trace(TEXT).logits.shape == (320,)


def test_a_tokenizer_without_an_end_of_text_is_fine(gpt2, checkpoint, tokenizer):
    """transformers would add one, with an id that the model does not have."""
    folder = checkpoint(gpt2(1, vocab_size=299))
    state = json.loads(tokenizer.to_str())
    state["added_tokens"] = []
    (folder / "tokenizer.json").write_text(json.dumps(state))
    assert load(folder).trace(TEXT).token_ids == tokenizer.encode(TEXT).ids


def test_a_tokenizer_that_cuts_or_pads_does_neither_here(gpt2, checkpoint, tokenizer):
    folder = checkpoint(gpt2(1))
    other = Tokenizer.from_str(tokenizer.to_str())
    other.enable_truncation(3)
    other.enable_padding(length=40)
    other.save(str(folder / "tokenizer.json"))
    trace = load(folder).trace(TEXT)
    assert b"".join(trace.token_bytes) == TEXT.encode()
    assert trace.left_out == 0


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\x00", b'{"model": {"type": "BPE"}}'])
def test_a_damaged_tokenizer(gpt2, checkpoint, content):
    folder = checkpoint(gpt2(1))
    (folder / "tokenizer.json").write_bytes(content)
    assert f"The tokenizer of {folder} cannot be read" in refused(folder)


def test_a_tokenizer_of_another_kind_is_refused(gpt2, checkpoint):
    from tokenizers import models

    folder = checkpoint(gpt2(1))
    Tokenizer(models.WordLevel({"a": 0})).save(str(folder / "tokenizer.json"))
    assert "is not a byte-level BPE like GPT-2's" in refused(folder)


# --- names ----------------------------------------------------------------------------------------


def test_a_name_is_never_looked_for_in_the_working_directory(gpt2, checkpoint, monkeypatch):
    """A folder called gpt2 beside the app is not what "gpt2" means."""
    decoy = checkpoint(gpt2(2), "gpt2")
    fetched = checkpoint(gpt2(1), "cache")
    monkeypatch.chdir(decoy.parent)
    asked: list[str] = []

    def fetch(repo_id: str, **_: Any) -> hub.Fetched:
        asked.append(repo_id)
        return hub.Fetched(fetched, "0" * 40, True)

    monkeypatch.setattr(hub, "fetch", fetch)
    model = load("gpt2")
    assert asked == ["gpt2"]
    check_equal(model, gpt2(1))
    assert model.description.name == "gpt2"
    assert model.description.source == "hub"
    assert load("./gpt2").description.weights_hash != model.description.weights_hash


@pytest.mark.parametrize(
    ("source", "local"),
    [
        ("gpt2", False),
        ("openai-community/gpt2", False),
        ("bundled", False),
        (".", True),
        ("..", True),
        ("./gpt2", True),
        ("../gpt2", True),
        ("/models/gpt2", True),
        ("~/gpt2", True),
        ("C:\\models\\gpt2", True),
        ("C:/models/gpt2", True),
        ("models\\gpt2", True),
        (".gpt2", False),
    ],
)
def test_what_is_a_path(source, local):
    assert checkpoints.is_local(source) is local


# --- there and back -------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{}, {"tie_word_embeddings": False}, {"n_inner": 40}], ids=str)
def test_what_is_saved_is_read_back_by_both(gpt2, checkpoint, tmp_path, settings):
    original = load(checkpoint(gpt2(1, **settings)))
    save(original, tmp_path / "saved")
    again = load(tmp_path / "saved")
    assert again.description.weights_hash == original.description.weights_hash
    assert again.config == original.config
    first, second = original.trace(TEXT), again.trace(TEXT)
    assert first.token_ids == second.token_ids
    assert np.array_equal(first.logits, second.logits)
    written = json.loads((tmp_path / "saved" / "config.json").read_text())
    assert written["tie_word_embeddings"] == settings.get("tie_word_embeddings", True)
    theirs, report = GPT2LMHeadModel.from_pretrained(
        tmp_path / "saved", attn_implementation="eager", output_loading_info=True
    )
    assert not any(report.values())
    check_equal(again, theirs)


def test_a_model_can_be_saved_where_it_came_from(gpt2, checkpoint):
    theirs = gpt2(1)
    folder = checkpoint(theirs)
    model = load(folder)
    save(model, folder)
    check_equal(model, theirs)
    check_equal(load(folder), theirs)
    assert not list(folder.glob("*.partial"))


# --- the bundled model ----------------------------------------------------------------------------


def test_the_bundled_model_equals_transformers(bundled):
    """As near to float64 as transformers' own float32; its scores reach 50, so 1e-6 is not."""
    theirs = GPT2LMHeadModel.from_pretrained(
        checkpoints.BUNDLED, dtype=torch.float32, attn_implementation="eager"
    )
    trace = bundled.trace("Once upon a time there was an old king, and the old king wept.")
    ours = [trace.logits, *map(trace.patterns, range(trace.n_layers))]
    single = flat(theirs_on(bundled, theirs, trace.text))
    double = flat(theirs_on(bundled, theirs.double(), trace.text))
    for number, (a, b, exact) in enumerate(zip(ours, single, double, strict=True)):
        np.testing.assert_allclose(a, b, rtol=0, atol=2e-5 if number == 0 else 5e-6)
        assert np.abs(a - exact).max() <= 2 * np.abs(b - exact).max() + 1e-6


def flat(found: tuple[np.ndarray, list[np.ndarray]]) -> list[np.ndarray]:
    return [found[0], *found[1]]


def test_the_bundled_model_is_small_and_whole(bundled):
    assert sum(path.stat().st_size for path in checkpoints.BUNDLED.iterdir()) <= 10e6
    config = bundled.config
    assert 4 <= config.n_layers <= 6
    assert config.n_layers * config.n_heads >= 24
    assert config.n_positions == 1024
    assert bundled.description.source == "bundled"
    assert bundled.description.stored_dtype == "float16"


def test_the_bundled_tokenizer_is_the_one_of_transformers(bundled):
    theirs = GPT2Tokenizer.from_pretrained(checkpoints.BUNDLED)
    for text in (TEXT, "I 😀 you\n\n\tnaïve", "once<|endoftext|>upon"):
        assert bundled.encode(text)[0] == theirs(text)["input_ids"]


def test_the_bundled_model_needs_neither_transformers_nor_the_hub():
    code = (
        "import sys; from mha_viz.checkpoints import load; load('bundled').trace('a king');"
        "print([m for m in ('transformers', 'huggingface_hub', 'streamlit') if m in sys.modules])"
    )
    root = Path(checkpoints.__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


# --- damage of any kind ---------------------------------------------------------------------------

WRONG_VALUES = [None, "", "x", -1, 0, 1.5, 10**12, [], [1], {}, {"a": 1}, True, "é" * 500]
DAMAGES = 160


@pytest.fixture(scope="module")
def sound(tmp_path_factory, gpt2, tokenizer) -> Path:
    folder = tmp_path_factory.mktemp("sound") / "model"
    gpt2(1).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def damage(folder: Path, dice: random.Random) -> None:
    """Breaks one file in one of many ways."""
    name = dice.choice(["model.safetensors"] * 3 + ["config.json"] * 3 + ["tokenizer.json"])
    path = folder / name
    whole = path.read_bytes()
    how = dice.choice(["cut", "header", "random", "settings", "drop", "append"])
    if name == "config.json" and how in ("settings", "random", "drop"):
        raw = json.loads(whole)
        raw[dice.choice(sorted(raw))] = dice.choice(WRONG_VALUES)
        path.write_text(json.dumps(raw))
    elif how == "cut":
        path.write_bytes(whole[: dice.randrange(len(whole))])
    elif how == "append":
        path.write_bytes(whole + dice.randbytes(dice.randrange(1, 50)))
    elif how == "random":
        path.write_bytes(dice.randbytes(dice.randrange(2000)))
    elif how == "drop":
        path.unlink()
    else:
        broken = bytearray(whole)
        for _ in range(dice.randrange(1, 9)):
            broken[dice.randrange(min(len(broken), 3000))] = dice.randrange(256)
        path.write_bytes(broken)


@pytest.mark.parametrize("seeds", range(0, DAMAGES, 40))
def test_damage_never_ends_in_anything_but_a_clear_message(sound, tmp_path, seeds):
    refusals = 0
    for seed in range(seeds, seeds + 40):
        folder = tmp_path / str(seed)
        shutil.copytree(sound, folder)
        damage(folder, random.Random(seed))
        try:
            trace = load(folder).trace("the cat")
        except MhaVizError as error:
            refusals += bool(readable(error))
        else:  # the damage hit something that does not matter
            assert np.isfinite(trace.logits).all()
        shutil.rmtree(folder)
    assert refusals > 20


@pytest.mark.parametrize("name", ["pytorch_model.bin", "ckpt.pt"])
def test_damaged_pickles_end_in_a_clear_message(gpt2, tmp_path, name):
    theirs = gpt2(1)
    config = json.dumps(theirs.config.to_dict())
    torch.save(theirs.state_dict() if "bin" in name else nanogpt(theirs), tmp_path / name)
    whole = (tmp_path / name).read_bytes()
    if "bin" in name:
        (tmp_path / "config.json").write_text(config)
    dice = random.Random(5)
    for _ in range(30):
        broken = bytearray(whole)
        for _ in range(dice.randrange(1, 40)):
            broken[dice.randrange(len(broken))] = dice.randrange(256)
        if dice.random() < 0.3:
            broken = broken[: dice.randrange(len(broken))]
        (tmp_path / name).write_bytes(broken)
        message = refused(tmp_path, MhaVizError, allow_pickle=True)
        assert message
