"""Reads and writes a checkpoint folder in the format of transformers."""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch import Tensor

from mha_viz.callbacks import OnProgress
from mha_viz.checkpoints.config import config_notes, config_to_json, read_config
from mha_viz.checkpoints.tensors import State, read_nanogpt, read_state
from mha_viz.checkpoints.weight_files import find_weights, not_read
from mha_viz.errors import CheckpointError, MhaVizError, SourceError
from mha_viz.gpt2 import GPT2Config

END_OF_TEXT = "<|endoftext|>"
Fingerprint = tuple[tuple[str, int, int, int], ...]
WORDS = (".json", ".txt", ".model")  # the endings of a tokenizer's files
READ = (*WORDS, ".safetensors", ".bin", ".pt")
LOCAL = re.compile(r"^(\.{1,2}$|\.{0,2}[/\\]|~|[A-Za-z]:[/\\]|.*\\)")


def is_local(source: str) -> bool:
    """Whether this string is a path rather than a name on the Hub."""
    return bool(LOCAL.match(source))


def expanded(source: str | Path) -> Path:
    """The path with its `~` expanded; for a model's folder in the Hub's cache, its snapshot.

    Raises SourceError for an unknown user name, and for a cache with several snapshots.
    """
    try:
        return _snapshot(Path(source).expanduser())
    except RuntimeError as error:
        raise SourceError(
            f"There is no folder {source}: the user name after “~” does not exist on this machine."
        ) from error


def _snapshot(path: Path) -> Path:
    try:
        snapshots = sorted((path / "snapshots").glob("*/config.json"))
        if not snapshots or (path / "config.json").exists():
            return path
    except (OSError, ValueError):  # an invalid path, which `read_weights` reports
        return path
    folders = {file.parent.name: file.parent for file in snapshots}
    main = path / "refs" / "main"
    current = main.read_text(errors="replace").strip() if main.is_file() else ""
    if current in folders:
        return folders[current]
    if len(folders) > 1:
        raise SourceError(
            f"{path} is a folder of the Hub's cache with {len(folders)} snapshots. Open one of "
            f"them: {', '.join(str(folder) for folder in list(folders.values())[:3])}."
        )
    return snapshots[0].parent


def fingerprint(path: Path) -> Fingerprint:
    """Name, size and times of the files that a model is read from; changes when one is rewritten.

    The time of the inode's last change is among them, which no copying tool sets back.
    """
    found = []
    folder, endings = (path, READ) if path.is_dir() else (path.parent, WORDS)
    with suppress(OSError, ValueError):  # a file that has just been replaced, or no path at all
        for file in sorted(folder.iterdir()):
            if file == path or file.suffix in endings:
                about = file.stat()
                found.append((file.name, about.st_size, about.st_mtime_ns, about.st_ctime_ns))
    return tuple(found)


def read_weights(
    path: Path, name: str, *, allow_pickle: bool = False, on_progress: OnProgress | None = None
) -> tuple[GPT2Config, State, dict[str, object]]:
    """The configuration, tensors and raw config.json of a folder or of a nanoGPT `.pt` file.

    `on_progress` is called with the fraction of the tensors read. Raises SourceError and
    CheckpointError, as `config` and `tensors` do.
    """
    try:
        if not path.exists():
            raise SourceError(f"There is no folder {name}. Check the path.")
        before = fingerprint(path)
        if path.is_dir():
            read = _read_folder(path, name, allow_pickle, on_progress)
        elif path.suffix == ".pt":
            read = _read_nanogpt(path, name)
        else:
            raise CheckpointError(
                f"{name} is a single file. Give the folder that holds it, with config.json and "
                "the tokenizer; only nanoGPT's .pt files can be opened alone."
            )
        if fingerprint(path) != before:
            raise SourceError(
                f"{name} changed while it was being read. Try again when the file is complete."
            )
        return read
    except MhaVizError:
        raise
    except OSError as error:
        raise SourceError(
            f"{name} could not be opened: {error.strerror}. Check the path."
        ) from error


def _read_folder(
    folder: Path, name: str, allow_pickle: bool, on_progress: OnProgress | None
) -> tuple[GPT2Config, State, dict[str, object]]:
    if not (folder / "config.json").exists() and (folder / "ckpt.pt").exists():
        return _read_nanogpt(folder / "ckpt.pt", name)
    config = read_config(folder, name)
    raw = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    files = find_weights(folder, name, allow_pickle=allow_pickle)
    tied = raw.get("tie_word_embeddings", True) is not False
    state = read_state(files, config, name, tied=tied, on_progress=on_progress)
    state.notes += config_notes(raw)
    if others := not_read(folder, files):
        read = files[0].name if len(files) == 1 else f"{len(files)} files"
        state.notes.append(
            f"Its weights come from {read}, as in transformers; not read: {', '.join(others)}."
        )
    return config, state, raw


def _read_nanogpt(path: Path, name: str) -> tuple[GPT2Config, State, dict[str, object]]:
    config, state = read_nanogpt(path, name)
    return config, state, config_to_json(config, torch.float32, config.vocab_size - 1)


def steps_unlike_gpt2(raw: Mapping[str, Any], settings: Mapping[str, Any]) -> list[str]:
    """Phrases for what a tokenizer.json does and GPT-2's own tokenizer does not."""
    model, splits = raw.get("model") or {}, raw.get("pre_tokenizer") or {}
    found = []
    if (kind := model.get("type", "BPE")) != "BPE":
        found.append(f"a {kind} model")
    found += [
        f"`{key}`"
        for key in (
            "continuing_subword_prefix",
            "end_of_word_suffix",
            "fuse_unk",
            "ignore_merges",
            "byte_fallback",
        )
        if model.get(key)
    ]
    if raw.get("normalizer"):
        found.append(f"a normalizer ({raw['normalizer'].get('type')})")
    if splits.get("type") != "ByteLevel" or not splits.get("use_regex", True):
        found.append(f"its way of splitting a text into words ({splits.get('type', 'none')})")
    elif splits.get("add_prefix_space") and "add_prefix_space" not in settings:
        found.append("a space before the text (`add_prefix_space`)")
    return found


def write_folder(
    folder: Path,
    config: GPT2Config,
    tensors: dict[str, Tensor],
    tokenizer: Tokenizer,
    *,
    dtype: torch.dtype,
) -> None:
    """Writes a folder that `load` reads, in the format of transformers."""
    folder.mkdir(parents=True, exist_ok=True)
    end_of_text = tokenizer.token_to_id(END_OF_TEXT)
    if end_of_text is None:
        end_of_text = config.vocab_size - 1
    raw = config_to_json(config, dtype, end_of_text)
    raw["tie_word_embeddings"] = "lm_head.weight" not in tensors
    _write_json(folder / "config.json", raw)
    stored = {name: tensor.detach().to(dtype).contiguous() for name, tensor in tensors.items()}
    # Replaced in one step: the old file survives an interrupted write, and stays intact for
    # processes that have it mapped.
    weights = folder / "model.safetensors"
    save_file(stored, weights.with_suffix(".partial"), metadata={"format": "pt"})
    weights.with_suffix(".partial").replace(weights)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings: dict[str, object] = {
        "add_prefix_space": False,
        "bos_token": END_OF_TEXT,
        "eos_token": END_OF_TEXT,
        "model_max_length": config.n_positions,
        "tokenizer_class": "GPT2Tokenizer",
        "unk_token": END_OF_TEXT,
    }
    if steps_unlike_gpt2(json.loads(tokenizer.to_str()), {}):
        settings = {
            "model_max_length": config.n_positions,
            "tokenizer_class": "PreTrainedTokenizerFast",  # transformers then reads it as it is
        }
    _write_json(folder / "tokenizer_config.json", settings)


def _write_json(path: Path, content: dict[str, object]) -> None:
    text = json.dumps(content, indent=2, sort_keys=True)
    path.write_text(f"{text}\n", encoding="utf-8")
