"""A GPT-2 folder on disk, read and written without transformers: the road of the bundled model."""

import json
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import Tensor

from mha_viz.gpt2 import GPT2Config


def config_from_json(raw: dict) -> GPT2Config:
    """The part of a GPT-2 config.json that shapes the model; absent keys take GPT-2's defaults."""
    d_model = raw.get("n_embd", 768)
    return GPT2Config(
        n_layers=raw.get("n_layer", 12),
        n_heads=raw.get("n_head", 12),
        d_model=d_model,
        d_mlp=raw.get("n_inner") or 4 * d_model,
        n_positions=raw.get("n_positions", 1024),
        vocab_size=raw.get("vocab_size", 50257),
        activation=raw.get("activation_function", "gelu_new"),
        layer_norm_epsilon=raw.get("layer_norm_epsilon", 1e-5),
        scale_attn_weights=raw.get("scale_attn_weights", True),
        scale_attn_by_inverse_layer_idx=raw.get("scale_attn_by_inverse_layer_idx", False),
    )


def config_to_json(config: GPT2Config, dtype: torch.dtype) -> dict:
    """A config.json that transformers reads as `GPT2LMHeadModel`."""
    end_of_text = config.vocab_size - 1
    return {
        "activation_function": config.activation,
        "architectures": ["GPT2LMHeadModel"],
        "attn_pdrop": 0.0,
        "bos_token_id": end_of_text,
        "dtype": str(dtype).removeprefix("torch."),
        "embd_pdrop": 0.0,
        "eos_token_id": end_of_text,
        "layer_norm_epsilon": config.layer_norm_epsilon,
        "model_type": "gpt2",
        "n_embd": config.d_model,
        "n_head": config.n_heads,
        "n_inner": None if config.d_mlp == 4 * config.d_model else config.d_mlp,
        "n_layer": config.n_layers,
        "n_positions": config.n_positions,
        "resid_pdrop": 0.0,
        "scale_attn_by_inverse_layer_idx": config.scale_attn_by_inverse_layer_idx,
        "scale_attn_weights": config.scale_attn_weights,
        "vocab_size": config.vocab_size,
    }


def read_folder(folder: Path) -> tuple[GPT2Config, dict[str, Tensor], Tokenizer]:
    config = config_from_json(json.loads((folder / "config.json").read_text(encoding="utf-8")))
    state = load_file(folder / "model.safetensors")
    return config, state, Tokenizer.from_file(str(folder / "tokenizer.json"))


def write_folder(
    folder: Path,
    config: GPT2Config,
    state: dict[str, Tensor],
    tokenizer: Tokenizer,
    *,
    dtype: torch.dtype,
) -> None:
    """A folder that `transformers.GPT2LMHeadModel.from_pretrained` loads as it is."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(config_to_json(config, dtype), indent=2, sort_keys=True)
    (folder / "config.json").write_text(text + "\n", encoding="utf-8")
    stored = {name: tensor.detach().to(dtype) for name, tensor in state.items()}
    save_file(stored, folder / "model.safetensors", metadata={"format": "pt"})
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {
        "add_prefix_space": False,
        "bos_token": "<|endoftext|>",
        "eos_token": "<|endoftext|>",
        "model_max_length": config.n_positions,
        "tokenizer_class": "GPT2Tokenizer",
        "unk_token": "<|endoftext|>",
    }
    text = json.dumps(settings, indent=2, sort_keys=True)
    (folder / "tokenizer_config.json").write_text(text + "\n", encoding="utf-8")
