"""Every setting of a configuration is used, or rejected with the key that is wrong."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.checkpoints import check_equal, edit_config, refused

from mha_viz.checkpoints import load, save
from mha_viz.errors import CheckpointError, NotGPT2, SourceError
from mha_viz.model import Model
from mha_viz.pruning import pruned_model


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


def test_settings_of_transformers_that_do_not_matter_do_not_matter(gpt2, checkpoint):
    theirs = gpt2(1)
    extra = {"return_dict": False, "output_attentions": False, "torch_dtype": "float16"}
    check_equal(load(edit_config(checkpoint(theirs), **extra)), theirs)


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


def test_an_adapter_is_rejected(gpt2, checkpoint):
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


def test_a_folder_without_a_config(tmp_path):
    message = refused(tmp_path, SourceError)
    assert "has no config.json" in message
    (tmp_path / "config.json").mkdir()
    assert "has no config.json" in refused(tmp_path, SourceError)


def test_the_configuration_names_the_heads(tiny: Model, tmp_path: Path):
    save(pruned_model(tiny, [(1, 3), (1, 0)]), tmp_path / "few")
    raw = json.loads((tmp_path / "few" / "config.json").read_text())
    assert raw["pruned_heads"] == {"1": [0, 3]}
    save(tiny, tmp_path / "whole")
    assert "pruned_heads" not in json.loads((tmp_path / "whole" / "config.json").read_text())
    sizes = [(tmp_path / n / "model.safetensors").stat().st_size for n in ("few", "whole")]
    assert sizes[1] - sizes[0] == pytest.approx(2 * 4 * (4 * 32 * 8 + 3 * 8), abs=100)


@pytest.mark.parametrize(
    "value",
    [
        [0, 1], "0", {"2": [0]}, {"-1": [0]}, {"a": [0]}, {"0": 1}, {"0": [4]}, {"0": [-1]},
        {"0": [1, 1]}, {"0": [True]}, {"0": [1.0]}, {"0": ["1"]}, {"0": None}, {"01": [1]},
    ],
    ids=str,
)  # fmt: skip
def test_invalid_pruned_heads_are_rejected(tiny: Model, tmp_path: Path, value: Any):
    save(tiny, tmp_path)
    with pytest.raises(CheckpointError, match=r"pruned_heads = .* expected layers from 0 to 1"):
        load(edit_config(tmp_path, pruned_heads=value))


@pytest.mark.parametrize("value", [{}, {"0": []}, None], ids=str)
def test_no_pruned_heads_are_none(tiny: Model, tmp_path: Path, value: Any):
    save(tiny, tmp_path)
    assert load(edit_config(tmp_path, pruned_heads=value), device="cpu").config == tiny.config


def test_attention_to_later_tokens_is_rejected(gpt2, checkpoint):
    """transformers would leave out the mask, and every pattern here would be another one."""
    assert "is_causal" in refused(edit_config(checkpoint(gpt2(1)), is_causal=False))
    load(edit_config(checkpoint(gpt2(1), "causal"), is_causal=True))


@pytest.mark.parametrize("value", [float("nan"), 2.0, -1])
def test_a_dropout_that_torch_cannot_have_is_rejected(gpt2, checkpoint, value):
    """transformers' own model fails on it, whether it is in training or not."""
    folder = edit_config(checkpoint(gpt2(1)), resid_pdrop=value)
    assert f"says resid_pdrop = {value}; expected a number from 0 to 1." in refused(folder)
