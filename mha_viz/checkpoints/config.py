"""Checks config.json: the architecture must be GPT-2, and every setting valid."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from mha_viz.errors import CheckpointError, NotGPT2, SourceError
from mha_viz.gpt2 import ACTIVATIONS, GPT2Config

ALIASES = {  # other models' names, which transformers also accepts for GPT-2
    "n_embd": "hidden_size",
    "n_head": "num_attention_heads",
    "n_layer": "num_hidden_layers",
    "n_positions": "max_position_embeddings",
}
LARGEST = {"n_layer": 1024}  # because all tensors are listed by name before any is read
FOREIGN = re.compile(  # settings of other models that would change GPT-2's numbers
    r"alibi|rotary|rope|rms|norm_type|qk_norm|softcap|window|sparse|local_att|parallel_(att|res)|"
    r"multi_query|kv_heads|logit_scale|embedding_multiplier|residual_multiplier"
)
NEUTRAL: tuple[Any, ...] = (None, False, {}, [], "")
DROPOUTS = ("attn_pdrop", "embd_pdrop", "resid_pdrop")  # unused, but torch refuses other values
UNSUPPORTED = {  # key in config.json -> why such a model is rejected
    "quantization_config": "its weights are quantised, and quantised weights cannot be read here",
    "add_cross_attention": "it has cross-attention to an encoder, whose input is missing here",
}


def read_config(folder: Path, name: str) -> GPT2Config:
    """The checked configuration of the checkpoint in `folder`.

    Raises SourceError without a config.json, and CheckpointError or NotGPT2 as `check_config` does.
    """
    path = folder / "config.json"
    if (folder / "adapter_config.json").exists():
        raise CheckpointError(
            f"{name} is an adapter (adapter_config.json), not a full model. "
            "Merge it into its base model, save the result, and load that."
        )
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, IsADirectoryError) as error:
        raise SourceError(
            f"{name} has no config.json. A GPT-2 folder holds config.json, model.safetensors and "
            "a tokenizer, as `save_pretrained` writes them."
        ) from error
    except (ValueError, RecursionError) as error:
        raise CheckpointError(
            f"The config.json of {name} is not valid JSON. Download or save it again."
        ) from error
    return check_config(raw, name)


def check_config(raw: object, name: str, *, file: str = "config.json") -> GPT2Config:
    """The configuration in `raw`, the parsed `file`; missing keys take GPT-2's defaults.

    Raises NotGPT2 for another architecture, CheckpointError for invalid or unsupported settings.
    """
    where = f"{file} of {name}"
    if not isinstance(raw, Mapping):
        raise CheckpointError(f"The {where} is not a JSON object. Download or save it again.")
    model_type = raw.get("model_type")
    if model_type is None:
        raise NotGPT2(
            f"The {where} has no `model_type`, so the architecture is unknown. "
            'A GPT-2 has "model_type": "gpt2".'
        )
    if model_type != "gpt2":
        raise NotGPT2(
            f"This checkpoint is a `{model_type}` model ({name}); this app reads `gpt2` models: "
            "gpt2, gpt2-medium, gpt2-large, gpt2-xl, distilgpt2 and models trained from them."
        )
    positions = raw.get("position_embedding_type", "absolute")
    if positions not in ("absolute", None) or raw.get("alibi"):
        kind = positions if positions not in ("absolute", None) else "alibi"
        raise CheckpointError(
            f"{name} is not supported: it encodes positions as {_short(kind)} "
            "(`position_embedding_type`), but GPT-2 adds learned position embeddings to the token "
            "embeddings. Choose a model with absolute positions."
        )
    if raw.get("is_causal") is False:
        raise CheckpointError(
            f"{name} is not supported: its tokens also look at later ones (`is_causal`). Choose a "
            "model with causal attention."
        )
    for key in DROPOUTS:
        value = raw.get(key)
        if isinstance(value, int | float) and not 0 <= value <= 1:  # nor NaN
            raise _wrong(key, value, "expected a number from 0 to 1", where)
    for key, reason in UNSUPPORTED.items():
        if raw.get(key):
            raise CheckpointError(f"{name} is not supported: {reason} (`{key}`).")
    d_model = _count(raw, "n_embd", 768, where)
    config = GPT2Config(
        n_layers=_count(raw, "n_layer", 12, where),
        n_heads=_count(raw, "n_head", 12, where),
        d_model=d_model,
        d_mlp=_count(raw, "n_inner", 4 * d_model, where),
        n_positions=_count(raw, "n_positions", 1024, where),
        vocab_size=_count(raw, "vocab_size", 50257, where),
        activation=_activation(raw, where),
        layer_norm_epsilon=_positive(raw, "layer_norm_epsilon", 1e-5, where),
        scale_attn_weights=_flag(raw, "scale_attn_weights", True, where),
        scale_attn_by_inverse_layer_idx=_flag(raw, "scale_attn_by_inverse_layer_idx", False, where),
    )
    if config.d_model % config.n_heads:
        raise CheckpointError(
            f"The {where} says n_embd = {config.d_model} and n_head = {config.n_heads}; "
            "n_embd must be a multiple of n_head."
        )
    return replace(config, pruned_heads=_pruned_heads(raw, config, where))


def config_notes(raw: Mapping[str, Any]) -> list[str]:
    """Notes on settings in config.json that GPT-2 does not have; transformers ignores them too."""
    notes = []
    if raw.get("auto_map"):
        notes.append(
            "The checkpoint ships custom code (`auto_map`), which was not run; it is computed as a "
            "standard GPT-2, as transformers does by default."
        )
    for key, value in raw.items():
        if FOREIGN.search(key) and key not in ALIASES.values() and value not in NEUTRAL:
            notes.append(f"GPT-2 has no setting `{key}` ({_short(value)}), so it was not applied.")
    return notes


def config_to_json(config: GPT2Config, dtype: torch.dtype, end_of_text: int) -> dict[str, Any]:
    """A config.json that `check_config` reads; transformers reads it too if no heads are pruned."""
    written: dict[str, Any] = {
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
    if config.pruned_heads:
        written["pruned_heads"] = {
            str(layer): list(heads) for layer, heads in enumerate(config.pruned_heads) if heads
        }
    return written


def _wrong(key: str, value: object, expected: str, where: str) -> CheckpointError:
    return CheckpointError(f"The {where} says {key} = {_short(value)}; {expected}.")


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 40 else f"{shown[:40]}…"


def _count(raw: Mapping[str, Any], key: str, default: int, where: str) -> int:
    values = [raw[k] for k in (key, ALIASES.get(key, key)) if raw.get(k) is not None]
    if not values:
        return default
    value, largest = values[0], LARGEST.get(key, 2**24)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= largest:
        raise _wrong(key, value, f"expected a whole number from 1 to {largest:,}", where)
    if value != values[-1]:
        other = f"{ALIASES[key]} is {_short(values[-1])}, but both must be equal"
        raise _wrong(key, value, other, where)
    return value


def _pruned_heads(
    raw: Mapping[str, Any], config: GPT2Config, where: str
) -> tuple[tuple[int, ...], ...]:
    """The pruned heads of each layer, in ascending order; () if no layer has any.

    The key and its form, {"layer": [heads]}, are those of transformers before version 5.
    """
    value = raw.get("pruned_heads") or {}
    layers = {str(layer): layer for layer in range(config.n_layers)}
    pruned: list[tuple[int, ...]] = [()] * config.n_layers
    expected = (
        f"expected layers from 0 to {config.n_layers - 1}, each with a list of different heads "
        f"from 0 to {config.n_heads - 1}"
    )
    if not isinstance(value, Mapping):
        raise _wrong("pruned_heads", value, expected, where)
    for layer, heads in value.items():
        integers = isinstance(heads, list) and all(type(head) is int for head in heads)
        in_range = integers and all(0 <= head < config.n_heads for head in heads)
        if layer not in layers or not in_range or len(set(heads)) < len(heads):
            raise _wrong("pruned_heads", value, expected, where)
        pruned[layers[layer]] = tuple(sorted(heads))
    return tuple(pruned) if any(pruned) else ()


def _positive(raw: Mapping[str, Any], key: str, default: float, where: str) -> float:
    value = raw.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1:
        raise _wrong(key, value, "expected a number between 0 and 1", where)
    return float(value)


def _flag(raw: Mapping[str, Any], key: str, default: bool, where: str) -> bool:
    value = raw.get(key, default)
    if not isinstance(value, bool):
        raise _wrong(key, value, "expected true or false", where)
    return value


def _activation(raw: Mapping[str, Any], where: str) -> str:
    value = raw.get("activation_function", "gelu_new")
    if not isinstance(value, str) or value not in ACTIVATIONS:
        raise _wrong(
            "activation_function", value, f"expected one of {', '.join(ACTIVATIONS)}", where
        )
    return value
