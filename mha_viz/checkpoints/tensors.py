"""Reads the tensors of a checkpoint and checks each of them.

The result is a complete GPT-2 state dict in float32, finite, with the names of transformers
(`transformer.h.0.attn.c_attn.weight`, stored as `[in, out]`).
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from mha_viz.callbacks import OnProgress
from mha_viz.checkpoints.config import check_config
from mha_viz.checkpoints.names import names
from mha_viz.errors import CheckpointError, SourceError
from mha_viz.gpt2 import GPT2Config

NANOGPT_SIZES = {  # key in model_args -> key in config.json
    "n_layer": "n_layer",
    "n_head": "n_head",
    "n_embd": "n_embd",
    "block_size": "n_positions",
    "vocab_size": "vocab_size",
}
WRAPPERS = ("module.", "_orig_mod.", "model.")  # left by DataParallel, torch.compile, trainers
BUFFERS = re.compile(r"\.(attn|crossattention)\.(bias|masked_bias)$")  # causal masks of old files
HEAD, EMBEDDING = "lm_head.weight", "transformer.wte.weight"
OTHER_HEADS = ("multiple_choice_head.", "score.", "classifier.", "v_head.")


@dataclass(slots=True)
class State:
    """A complete state dict, the types it was stored in, and notes for the user."""

    tensors: dict[str, Tensor]
    stored_dtype: str
    notes: list[str] = field(default_factory=list)


def find_weights(folder: Path, name: str, *, allow_pickle: bool) -> list[Path]:
    """The files that hold the weights. Raises SourceError if any is missing."""
    single, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    if single.exists():
        return [single]
    if index.exists():
        return _shards(index, name)
    pickles = sorted(folder.glob("pytorch_model*.bin"))
    if pickles and allow_pickle:
        return pickles
    if pickles:
        raise CheckpointError(
            f"{name} has its weights only in {pickles[0].name}. A pickle can run code, so it is "
            "not opened. Save the weights as safetensors or, if you trust the file, call "
            "load(..., allow_pickle=True) in Python."
        )
    raise SourceError(f"{name} has no weights: expected model.safetensors beside config.json.")


def read_state(
    files: list[Path],
    config: GPT2Config,
    name: str,
    *,
    tied: bool,
    on_progress: OnProgress | None = None,
) -> State:
    """The state dict in `files`, checked against `config`; see the module for its form.

    `on_progress` is called with the fraction done. Raises CheckpointError for a tensor that is
    missing, unknown, of the wrong shape, NaN or infinite, and names it.
    """
    raw: dict[str, Tensor] = {}
    for path in files:
        raw.update(_read_file(path, name))
    return complete(_normalise(raw, name), config, name, tied=tied, on_progress=on_progress)


def read_nanogpt(path: Path, name: str) -> tuple[GPT2Config, State]:
    """A checkpoint of nanoGPT's train.py, which stores `[out, in]` and names sizes differently."""
    payload = _torch_load(path, name)
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
    tensors = _normalise(_tensors(raw), name)
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
    """Checks names, shapes and values; a model without any biases gets zeros for them."""
    expected = {entry.theirs: shape for entry, shape in _shapes(config)}
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
        notes.append("The file has no biases; they are zero.")
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
    inside = [key for key in extra if not key.startswith(OTHER_HEADS)]
    if inside:
        raise CheckpointError(
            f"{name} holds {_some(inside)}, which GPT-2 does not have, so this app cannot compute "
            "what the model computes. Choose another model."
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
    """Gives all names the same prefix, and drops the masks that old files contain."""
    tensors: dict[str, Tensor] = {}
    for key, tensor in raw.items():
        clean = key
        while clean.startswith(WRAPPERS):
            clean = clean.split(".", 1)[1]
        if BUFFERS.search(clean):
            continue
        if clean == "lm_head.decoder.weight":  # an old copy of the tied head
            continue
        if clean.startswith(("wte.", "wpe.", "h.", "ln_f.")):
            clean = f"transformer.{clean}"
        if clean in tensors:
            raise CheckpointError(f"{name} holds `{clean}` twice, the second time as `{key}`.")
        tensors[clean] = tensor
    return tensors


def _shards(index: Path, name: str) -> list[Path]:
    try:
        weight_map = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
        shards = sorted({str(value) for value in weight_map.values()})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(
            f"{index.name} of {name} is not a list of shards. Download or save it again."
        ) from error
    for shard in shards:
        if Path(shard).name != shard:
            raise CheckpointError(f"{index.name} of {name} points outside of its folder: {shard}.")
        if not (index.parent / shard).exists():
            raise SourceError(
                f"{name} lacks {shard}, one of the {len(shards)} files its weights are in. "
                "Download that file again."
            )
    return [index.parent / shard for shard in shards]


def _read_file(path: Path, name: str) -> dict[str, Tensor]:
    if path.suffix != ".safetensors":
        return _tensors(_torch_load(path, name))
    try:
        tensors: dict[str, Tensor] = load_file(path)
    except Exception as error:
        # For a damaged header, torch raises several types besides SafetensorError.
        raise CheckpointError(_what_is_wrong(path, name)) from error
    return tensors


def _tensors(payload: Mapping[Any, Any]) -> dict[str, Tensor]:
    return {k: v for k, v in payload.items() if isinstance(k, str) and isinstance(v, Tensor)}


def _torch_load(path: Path, name: str) -> dict[str, Any]:
    try:
        payload = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        # A damaged pickle can raise almost any exception; none of its code runs with weights_only.
        raise CheckpointError(
            f"{path.name} of {name} is damaged or holds more than plain tensors. It was rejected, "
            "and no code in it was run. Save the weights as safetensors."
        ) from error
    if not isinstance(payload, dict):
        raise CheckpointError(
            f"{path.name} of {name} does not hold a state dict. Save the weights as safetensors."
        )
    return payload


def _what_is_wrong(path: Path, name: str) -> str:
    size = path.stat().st_size if path.exists() else 0
    with path.open("rb") as file:
        head = file.read(64)
    if size == 0:
        return f"{path.name} of {name} is empty. Download it again."
    if head.startswith(b"version https://git-lfs"):
        return (
            f"{path.name} of {name} is a Git LFS pointer of {size} bytes, not the weights. "
            "Run `git lfs pull` in that folder, or download the file itself."
        )
    return f"{path.name} of {name} ({size:,} bytes) is truncated or damaged. Download it again."


def _some(keys: list[str]) -> str:
    shown = ", ".join(f"`{key}`" for key in keys[:3])
    return shown if len(keys) <= 3 else f"{shown} and {len(keys) - 3} more"
