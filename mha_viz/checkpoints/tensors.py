"""Reads the tensors of a checkpoint and checks each of them.

The result is a complete GPT-2 state dict of finite float32 values, with the names of transformers
(`transformer.h.0.attn.c_attn.weight`, stored as `[in, out]`).
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mha_viz.callbacks import OnProgress
from mha_viz.checkpoints.config import check_config
from mha_viz.checkpoints.names import names
from mha_viz.checkpoints.weight_files import equal, only_tensors, read_files, torch_load
from mha_viz.errors import CheckpointError
from mha_viz.gpt2 import GPT2Config

NANOGPT_SIZES = {  # key in model_args -> key in config.json
    "n_layer": "n_layer",
    "n_head": "n_head",
    "n_embd": "n_embd",
    "block_size": "n_positions",
    "vocab_size": "vocab_size",
}
# The tensors of GPT2Model, under any prefix from a trainer or a class that wraps it.
TRUNK = re.compile(
    r"(?P<wrapper>(?:.*?\.)??)(?:transformer\.)?(?P<rest>(?:wte|wpe|ln_f|h\.\d+)\..+)"
)
WRAPPERS = (  # prefixes of other tensors: DataParallel, Opacus, torch.compile, PEFT, TRL, trainers
    "module.",
    "_module.",
    "_orig_mod.",
    "base_model.model.",
    "base_model.",
    "pretrained_model.",
    "model.",
)
BUFFERS = re.compile(r"\.(attn|crossattention)\.(bias|masked_bias)$")  # causal masks of old files
HEAD, EMBEDDING = "lm_head.weight", "transformer.wte.weight"
OTHER_HEADS = re.compile(  # of other tasks, which read the residual stream beside the unembedding
    r"(?!lm_head\.)(\w*head\w*|score|classifier|qa_outputs|out_proj|summary|regressor|pooler)(\.|$)"
)


@dataclass(slots=True)
class State:
    """A complete state dict, the dtypes it was stored in, and notes for the user."""

    tensors: dict[str, Tensor]
    stored_dtype: str
    notes: list[str] = field(default_factory=list)


def read_state(
    files: list[Path],
    config: GPT2Config,
    name: str,
    *,
    tied: bool,
    on_progress: OnProgress | None = None,
) -> State:
    """The state dict in `files`, checked against `config`, as the module docstring describes it.

    `on_progress` is called with the fraction done. Raises CheckpointError for a tensor that is
    missing, unknown, of the wrong shape, NaN or infinite, and names it.
    """
    tensors = _normalise(read_files(files, name), name)
    return complete(tensors, config, name, tied=tied, on_progress=on_progress)


def read_nanogpt(path: Path, name: str) -> tuple[GPT2Config, State]:
    """A checkpoint of nanoGPT's train.py, with `[out, in]` matrices and other names of sizes."""
    payload = torch_load(path, name)
    args, raw = payload.get("model_args"), payload.get("model")
    if not isinstance(args, dict) or not isinstance(raw, dict):
        raise CheckpointError(
            f"{path.name} of {name} is not a nanoGPT checkpoint: expected `model` and `model_args`."
        )
    lacking = [size for size in NANOGPT_SIZES if size not in args]
    if lacking:
        raise CheckpointError(f"The model_args of {name} lack {_some(lacking)}.")
    sizes = {theirs: args[size] for size, theirs in NANOGPT_SIZES.items()}
    fixed = {"model_type": "gpt2", "activation_function": "gelu"}
    config = check_config(fixed | sizes, name, file="model_args")
    tensors = _normalise(only_tensors(raw), name)
    for entry in names(config):
        if entry.transposed and entry.theirs in tensors:
            tensors[entry.theirs] = tensors[entry.theirs].t().contiguous()
    return config, complete(tensors, config, name, tied=True)


def complete(
    tensors: dict[str, Tensor],
    config: GPT2Config,
    name: str,
    *,
    tied: bool,
    on_progress: OnProgress | None = None,
) -> State:
    """Checks names, shapes and values; a model without any biases gets zero biases."""
    expected = {entry.theirs: shape for entry, shape in _shapes(config)}
    if tied and EMBEDDING not in tensors and HEAD in tensors:
        # Of tensors that share memory, safetensors stores one, under either name.
        tensors[EMBEDDING] = tensors.pop(HEAD)
    if HEAD in tensors or not tied:
        expected[HEAD] = expected[EMBEDDING]
    biases = [key for key in expected if key.endswith(".bias")]
    missing = [key for key in expected if key not in tensors]
    if missing and missing != biases:
        raise CheckpointError(
            f"{name} lacks {_some(missing)}. Without all of its weights the model would be "
            "partly random, so it is not loaded."
        )
    stored = {str(t.dtype).removeprefix("torch.") for t in tensors.values()}
    notes = _ignore_the_rest(tensors, expected, name)
    requires = "its config.json requires"
    if config.pruned_heads:
        requires = "its config.json, with `pruned_heads`, requires"
    checked = {}
    for done, (key, shape) in enumerate(expected.items()):
        if on_progress is not None:
            on_progress(done / len(expected))
        if key in tensors:
            checked[key] = _checked(key, tensors[key], shape, name, requires)
    if missing:
        checked |= {key: torch.zeros(expected[key]) for key in biases}
        notes.append("The file has no biases, so they were set to zero.")
    n_pruned = sum(map(len, config.pruned_heads))
    if n_pruned:
        notes.append(f"{n_pruned} of its heads have been pruned (`pruned_heads`).")
    if HEAD not in checked:
        notes.append("The unembedding is the token embedding (tied head).")
    elif torch.equal(checked[HEAD], checked[EMBEDDING]):
        del checked[HEAD]
    else:
        notes.append("The unembedding is a tensor of its own (untied head).")
    return State(checked, "/".join(sorted(stored)), notes)


def weights_hash(tensors: Mapping[str, Tensor], on_progress: OnProgress | None = None) -> str:
    """SHA-256 over the names and float32 values, whatever the file format.

    `on_progress` is called with the fraction done.
    """
    digest = hashlib.sha256()
    for done, key in enumerate(sorted(tensors)):
        if on_progress is not None:
            on_progress(done / len(tensors))
        digest.update(key.encode())
        digest.update(tensors[key].contiguous().numpy().data)
    return digest.hexdigest()


def _shapes(config: GPT2Config) -> list[tuple[Any, tuple[int, ...]]]:
    C, M = config.d_model, config.d_mlp
    sizes = {
        "wte.weight": (config.vocab_size, C),
        "wpe.weight": (config.n_positions, C),
        "c_fc.weight": (C, M),
        "c_fc.bias": (M,),
        "mlp.c_proj.weight": (M, C),
    }
    attention: dict[str, tuple[int, ...]] = {}
    for layer in range(config.n_layers):
        attn, D = f"transformer.h.{layer}.attn", len(config.kept_heads(layer)) * config.d_head
        attention[f"{attn}.c_attn.weight"] = (C, 3 * D)
        attention[f"{attn}.c_attn.bias"] = (3 * D,)
        attention[f"{attn}.c_proj.weight"] = (D, C)

    def shape(name: str) -> tuple[int, ...]:
        return attention.get(name) or next(
            (s for end, s in sizes.items() if name.endswith(end)), (C,)
        )

    return [(entry, shape(entry.theirs)) for entry in names(config)]


def _ignore_the_rest(
    tensors: dict[str, Tensor], expected: dict[str, tuple[int, ...]], name: str
) -> list[str]:
    """Notes on extra tensors. Raises CheckpointError for those that affect the logits."""
    extra = [key for key in tensors if key not in expected]
    inside = [key for key in extra if not OTHER_HEADS.match(key)]
    if inside:
        raise CheckpointError(
            f"{name} holds {_some(inside)}, which GPT-2 does not have, so this app cannot "
            "reproduce the model's outputs. Choose another model."
        )
    return [f"Not loaded, because GPT-2's logits do not use it: {_some(extra)}."] if extra else []


def _checked(key: str, tensor: Tensor, shape: tuple[int, ...], name: str, requires: str) -> Tensor:
    if tuple(tensor.shape) != shape:
        raise CheckpointError(
            f"The tensor `{key}` of {name} has shape {list(tensor.shape)}; "
            f"{requires} {list(shape)}."
        )
    if not tensor.is_floating_point() or tensor.layout != torch.strided or tensor.is_meta:
        raise CheckpointError(
            f"The tensor `{key}` of {name} holds {tensor.dtype} ({tensor.layout}), not dense "
            "floating-point numbers. Save it as float32."
        )
    # A copy, because safetensors maps the file: a change of the file would change the model.
    tensor = tensor.detach().to(torch.float32, copy=True)
    if not bool(torch.isfinite(tensor).all()):
        raise CheckpointError(
            f"The tensor `{key}` of {name} holds NaN or infinite values. "
            "The file is damaged, or its training diverged."
        )
    return tensor


def _normalise(raw: dict[str, Tensor], name: str) -> dict[str, Tensor]:
    """Gives all names the same prefix, and drops the masks that old files contain.

    Raises CheckpointError for two tensors with the same name and different values.
    """
    found = {key: TRUNK.fullmatch(key) for key in raw}
    wrappers = {match["wrapper"] for match in found.values() if match} - {""}
    tensors: dict[str, Tensor] = {}
    origin: dict[str, str] = {}
    for key, tensor in raw.items():
        match = found[key]
        clean = f"transformer.{match['rest']}" if match else _unwrapped(key, wrappers)
        if BUFFERS.search(clean):
            continue
        if clean == "lm_head.decoder.weight":  # an old copy of the tied head
            continue
        if clean in tensors and not equal(tensors[clean], tensor):
            raise CheckpointError(
                f"{name} holds `{clean}` twice, with different values: as `{origin[clean]}` and as "
                f"`{key}`. Save the checkpoint again with only one of them."
            )
        tensors[clean], origin[clean] = tensor, key
    _check_one_network(found, tensors, origin, name)
    return tensors


def _check_one_network(
    found: Mapping[str, re.Match[str] | None],
    tensors: Mapping[str, Tensor],
    origin: Mapping[str, str],
    name: str,
) -> None:
    """Raises CheckpointError if no prefix has all tensors of the network.

    They may be parts of several networks, and transformers would not put them together.
    """
    prefixes: dict[str, set[str]] = {}
    for match in filter(None, found.values()):
        if (clean := f"transformer.{match['rest']}") in tensors:
            prefixes.setdefault(clean, set()).add(match["wrapper"])
    common = {match["wrapper"] for match in found.values() if match}
    for key, holders in prefixes.items():
        common &= holders
        if not common:
            raise CheckpointError(
                f"{name} holds parts of a GPT-2 under different prefixes, such as "
                f"`{origin[next(iter(prefixes))]}` and `{origin[key]}`, so it is unclear which "
                "belong together. Save the checkpoint again with only one network."
            )


def _unwrapped(key: str, wrappers: set[str]) -> str:
    """The name without prefixes of wrappers, for a tensor outside GPT2Model."""
    for wrapper in sorted(wrappers, key=len, reverse=True):
        key = key.removeprefix(wrapper)
    while key.startswith(WRAPPERS):
        key = key.removeprefix(next(filter(key.startswith, WRAPPERS)))
    return key


def _some(keys: list[str]) -> str:
    shown = ", ".join(f"`{key}`" for key in keys[:3])
    return shown if len(keys) <= 3 else f"{shown} and {len(keys) - 3} more"
