"""config.json: is this a GPT-2, and which? Read here first, since a library would guess."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from mha_viz.errors import CheckpointError, NotGPT2, SourceError
from mha_viz.gpt2 import ACTIVATIONS, GPT2Config

UNSUPPORTED = {  # key in config.json -> what it means for the reader
    "pruned_heads": "its heads were pruned by an old library, which no longer says which rows are left",
    "quantization_config": "its weights are quantized, and quantized weights are not read here",
    "add_cross_attention": "it has cross-attention to an encoder, which a text alone cannot feed",
}


def read_config(folder: Path, name: str) -> GPT2Config:
    """The checked configuration of the checkpoint in `folder`.

    Raises SourceError without a config.json, and CheckpointError or NotGPT2 as `check_config` does.
    """
    path = folder / "config.json"
    if (folder / "adapter_config.json").exists():
        raise CheckpointError(
            f"{name} holds an adapter (adapter_config.json), not a whole model. "
            "Merge it into its base model, save that, and load the result."
        )
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise SourceError(
            f"{name} has no config.json. A GPT-2 folder holds config.json, model.safetensors and "
            "a tokenizer, as `save_pretrained` writes them."
        ) from error
    except (ValueError, RecursionError) as error:
        raise CheckpointError(
            f"The config.json of {name} is not valid JSON. Fetch or save it again."
        ) from error
    return check_config(raw, name)


def check_config(raw: object, name: str) -> GPT2Config:
    """The configuration that config.json holds, once parsed; absent keys take GPT-2's defaults.

    Raises NotGPT2 for another architecture, CheckpointError for what cannot be read or trusted.
    """
    if not isinstance(raw, Mapping):
        raise CheckpointError(f"The config.json of {name} holds no object of settings.")
    model_type = raw.get("model_type")
    if model_type is None:
        raise NotGPT2(
            f"The config.json of {name} has no `model_type`, so it does not say what it is. "
            'A GPT-2 has "model_type": "gpt2".'
        )
    if model_type != "gpt2":
        raise NotGPT2(
            f"This checkpoint is a `{model_type}` model ({name}); this app reads `gpt2` models: "
            "gpt2, gpt2-medium, gpt2-large, gpt2-xl, distilgpt2 and what was trained from them."
        )
    for key, reason in UNSUPPORTED.items():
        if raw.get(key):
            raise CheckpointError(f"{name} cannot be shown truly: {reason} (`{key}`).")
    d_model = _count(raw, "n_embd", 768, name)
    config = GPT2Config(
        n_layers=_count(raw, "n_layer", 12, name),
        n_heads=_count(raw, "n_head", 12, name),
        d_model=d_model,
        d_mlp=_count(raw, "n_inner", 4 * d_model, name),
        n_positions=_count(raw, "n_positions", 1024, name),
        vocab_size=_count(raw, "vocab_size", 50257, name),
        activation=_activation(raw, name),
        layer_norm_epsilon=_positive(raw, "layer_norm_epsilon", 1e-5, name),
        scale_attn_weights=_flag(raw, "scale_attn_weights", True, name),
        scale_attn_by_inverse_layer_idx=_flag(raw, "scale_attn_by_inverse_layer_idx", False, name),
    )
    if config.d_model % config.n_heads:
        raise CheckpointError(
            f"The config.json of {name} says n_embd = {config.d_model} and n_head = "
            f"{config.n_heads}; the first must be a multiple of the second."
        )
    return config


def config_to_json(config: GPT2Config, dtype: torch.dtype, end_of_text: int) -> dict[str, Any]:
    """A config.json that `transformers.GPT2LMHeadModel` and `check_config` read back."""
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


def _wrong(key: str, value: object, expected: str, name: str) -> CheckpointError:
    return CheckpointError(f"The config.json of {name} says {key} = {value!r}; {expected}.")


def _count(raw: Mapping[str, Any], key: str, default: int, name: str) -> int:
    value = raw.get(key)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 2**24:
        raise _wrong(key, value, "expected a whole number of at least 1", name)
    return value


def _positive(raw: Mapping[str, Any], key: str, default: float, name: str) -> float:
    value = raw.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1:
        raise _wrong(key, value, "expected a number between 0 and 1", name)
    return float(value)


def _flag(raw: Mapping[str, Any], key: str, default: bool, name: str) -> bool:
    value = raw.get(key, default)
    if not isinstance(value, bool):
        raise _wrong(key, value, "expected true or false", name)
    return value


def _activation(raw: Mapping[str, Any], name: str) -> str:
    value = raw.get("activation_function", "gelu_new")
    if not isinstance(value, str) or value not in ACTIVATIONS:
        raise _wrong("activation_function", value, f"known are {', '.join(ACTIVATIONS)}", name)
    return value
