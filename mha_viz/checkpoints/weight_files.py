"""The files that hold a checkpoint's weights: the ones that transformers reads, and their tensors.

Tried in this order: model.safetensors, its shards, pytorch_model.bin, its shards; unless
config.json names another file (`transformers_weights`). Nothing in a pickle is executed.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from mha_viz.errors import CheckpointError, SourceError

SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
PICKLE, PICKLE_INDEX = "pytorch_model.bin", "pytorch_model.bin.index.json"
ELSEWHERE = {  # a pattern -> the format of the file, and how to get safetensors from it
    "flax_model*.msgpack": ("Flax", "Open it in transformers 4 with `from_flax=True`"),
    "tf_model*.h5": ("TensorFlow", "Open it in transformers 4 with `from_tf=True`"),
    "*.ckpt*": ("TensorFlow", "Convert it with transformers 4 (`convert_gpt2_original_tf…`)"),
    "*.onnx": ("ONNX", "Open the PyTorch model that it was exported from"),
    "*.gguf": ("GGUF", "Open it in transformers with `gguf_file=`"),
}


def find_weights(folder: Path, name: str, *, allow_pickle: bool) -> list[Path]:
    """The files that hold the weights, as transformers chooses them.

    Raises SourceError if any is missing, and CheckpointError for weights in another format.
    """
    named = _named(folder, name)
    if named is not None:
        return _shards(named, name) if named.suffix == ".json" else [named]
    if (folder / SINGLE).is_file():
        return [folder / SINGLE]
    if (folder / INDEX).is_file():
        return _shards(folder / INDEX, name)
    found = next((p for p in (PICKLE, PICKLE_INDEX) if (folder / p).is_file()), None)
    if found is None:
        raise _without_weights(folder, name)
    if not allow_pickle:
        raise CheckpointError(
            f"{name} has its weights only in {found}. A pickle can run code, so it is "
            "not opened. Save the weights as safetensors or, if you trust the file, call "
            "load(..., allow_pickle=True) in Python, or add --allow-pickle to an mha-viz command."
        )
    return [folder / found] if found == PICKLE else _shards(folder / found, name)


def not_read(folder: Path, read: list[Path]) -> list[str]:
    """The names of other files with PyTorch weights in the folder, in order."""
    names = {file.name for file in _torch_files(folder)} - {file.name for file in read}
    return sorted(names)


def read_files(files: list[Path], name: str) -> dict[str, Tensor]:
    """All tensors in these files by name. Raises CheckpointError for a file that cannot be read."""
    tensors: dict[str, Tensor] = {}
    for path in files:
        for key, tensor in _read_file(path, name).items():
            if key in tensors and not equal(tensors[key], tensor):
                raise CheckpointError(
                    f"{name} holds `{key}` in several of its files, with different values. "
                    "Download or save it again."
                )
            tensors[key] = tensor
    return tensors


def equal(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same type, shape and values."""
    return one.dtype == other.dtype and one.shape == other.shape and torch.equal(one, other)


def torch_load(path: Path, name: str) -> dict[str, Any]:
    """The content of a pickle of plain tensors and numbers. Raises CheckpointError."""
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


def only_tensors(payload: Mapping[Any, Any]) -> dict[str, Tensor]:
    """The tensors with a name; a trainer's other entries are dropped."""
    return {k: v for k, v in payload.items() if isinstance(k, str) and isinstance(v, Tensor)}


def _named(folder: Path, name: str) -> Path | None:
    """The file that config.json names, if any."""
    try:
        raw = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):  # which `read_config` explains
        return None
    chosen = raw.get("transformers_weights") if isinstance(raw, dict) else None
    if chosen is None:
        return None
    endings = (".safetensors", ".safetensors.index.json")
    if not isinstance(chosen, str) or not chosen.endswith(endings) or Path(chosen).name != chosen:
        raise CheckpointError(
            f"The config.json of {name} says transformers_weights = {chosen!r:.60}; expected a "
            "file in its folder that ends in .safetensors or .safetensors.index.json."
        )
    if not (folder / chosen).is_file():
        raise SourceError(
            f"{name} lacks {chosen}, which its config.json names as its weights. Download it again."
        )
    return folder / chosen


def _without_weights(folder: Path, name: str) -> SourceError | CheckpointError:
    others = sorted(file.name for file in _torch_files(folder))
    if others:
        return CheckpointError(
            f"{name} has no model.safetensors, only {_list(others)}, which transformers does not "
            "read by itself. Rename the file to model.safetensors if it holds the whole model."
        )
    for pattern, (kind, advice) in ELSEWHERE.items():
        if found := sorted(folder.glob(pattern)):
            return CheckpointError(
                f"{name} has its weights only in {found[0].name} ({kind}), which this app does not "
                f"read. {advice} and save it with save_pretrained, which writes model.safetensors."
            )
    return SourceError(f"{name} has no weights: expected model.safetensors beside config.json.")


def _torch_files(folder: Path) -> list[Path]:
    """The weight files in PyTorch's formats, except those of adapters and trainers."""
    files = [*folder.glob("*.safetensors"), *folder.glob("*model*.bin")]
    return [file for file in files if file.is_file() and not file.name.startswith("adapter_")]


def _shards(index: Path, name: str) -> list[Path]:
    try:
        weight_map = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
        shards = sorted({str(value) for value in weight_map.values()})
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CheckpointError(
            f"{index.name} of {name} is not a list of shards. Download or save it again."
        ) from error
    for shard in shards:
        if Path(shard).name != shard:
            raise CheckpointError(f"{index.name} of {name} points outside of its folder: {shard}.")
        if not (index.parent / shard).exists():
            raise SourceError(
                f"{name} lacks {shard}, one of its {len(shards)} weight files. Download that file "
                "again."
            )
    return [index.parent / shard for shard in shards]


def _read_file(path: Path, name: str) -> dict[str, Tensor]:
    if path.suffix != ".safetensors":
        return only_tensors(torch_load(path, name))
    try:
        tensors: dict[str, Tensor] = load_file(path)
    except Exception as error:
        # For a damaged header, torch raises several types besides SafetensorError.
        raise CheckpointError(_what_is_wrong(path, name)) from error
    return tensors


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


def _list(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
