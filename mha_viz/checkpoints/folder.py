"""Reads and writes a checkpoint folder in the format of transformers."""

import json
import re
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch import Tensor

from mha_viz.callbacks import OnProgress
from mha_viz.checkpoints.config import config_to_json, read_config
from mha_viz.checkpoints.tensors import State, find_weights, read_nanogpt, read_state
from mha_viz.errors import CheckpointError, MhaVizError, SourceError
from mha_viz.gpt2 import GPT2Config

END_OF_TEXT = "<|endoftext|>"
LOCAL = re.compile(r"^(\.{1,2}$|\.{0,2}[/\\]|~|[A-Za-z]:[/\\]|.*\\)")


def is_local(source: str) -> bool:
    """Whether this string is a path, and not a name on the Hub."""
    return bool(LOCAL.match(source))


def expanded(source: str | Path) -> Path:
    """The path with its `~` expanded. Raises SourceError for an unknown user name."""
    try:
        return Path(source).expanduser()
    except RuntimeError as error:
        raise SourceError(
            f"There is no folder {source}: the user name after “~” does not exist on this machine."
        ) from error


def read_weights(
    place: Path, name: str, *, allow_pickle: bool = False, on_progress: OnProgress | None = None
) -> tuple[GPT2Config, State, dict[str, object]]:
    """Configuration, tensors, and the raw config.json of a folder or of a nanoGPT `.pt` file.

    `on_progress` is called with the fraction of the tensors read. Raises SourceError and
    CheckpointError, as `config` and `tensors` do.
    """
    try:
        if not place.exists():
            raise SourceError(f"There is no folder {name}. Check the path.")
        if place.is_dir():
            return _read_folder(place, name, allow_pickle, on_progress)
        if place.suffix == ".pt":
            return _read_nanogpt(place, name)
    except MhaVizError:
        raise
    except OSError as error:
        raise SourceError(
            f"{name} could not be opened: {error.strerror}. Check the path."
        ) from error
    raise CheckpointError(
        f"{name} is a single file. Give the folder that holds it, with config.json and "
        "the tokenizer; only nanoGPT's .pt files can be opened alone."
    )


def _read_folder(
    folder: Path, name: str, allow_pickle: bool, on_progress: OnProgress | None
) -> tuple[GPT2Config, State, dict[str, object]]:
    if not (folder / "config.json").exists() and (folder / "ckpt.pt").exists():
        return _read_nanogpt(folder / "ckpt.pt", name)
    config = read_config(folder, name)
    raw = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    files = find_weights(folder, name, allow_pickle=allow_pickle)
    tied = raw.get("tie_word_embeddings", True) is not False
    return config, read_state(files, config, name, tied=tied, on_progress=on_progress), raw


def _read_nanogpt(path: Path, name: str) -> tuple[GPT2Config, State, dict[str, object]]:
    config, state = read_nanogpt(path, name)
    return config, state, config_to_json(config, torch.float32, config.vocab_size - 1)


def write_folder(
    folder: Path,
    config: GPT2Config,
    tensors: dict[str, Tensor],
    tokenizer: Tokenizer,
    *,
    dtype: torch.dtype,
) -> None:
    """Writes a folder that `load` and `transformers.GPT2LMHeadModel.from_pretrained` read."""
    folder.mkdir(parents=True, exist_ok=True)
    end_of_text = tokenizer.token_to_id(END_OF_TEXT)
    if end_of_text is None:
        end_of_text = config.vocab_size - 1
    raw = config_to_json(config, dtype, end_of_text)
    raw["tie_word_embeddings"] = "lm_head.weight" not in tensors
    _write_json(folder / "config.json", raw)
    stored = {name: tensor.detach().to(dtype).contiguous() for name, tensor in tensors.items()}
    # Replaced in one step: an interrupted write leaves the old file, and processes that have it
    # mapped keep it.
    weights = folder / "model.safetensors"
    save_file(stored, weights.with_suffix(".partial"), metadata={"format": "pt"})
    weights.with_suffix(".partial").replace(weights)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {
        "add_prefix_space": False,
        "bos_token": END_OF_TEXT,
        "eos_token": END_OF_TEXT,
        "model_max_length": config.n_positions,
        "tokenizer_class": "GPT2Tokenizer",
        "unk_token": END_OF_TEXT,
    }
    _write_json(folder / "tokenizer_config.json", settings)


def _write_json(path: Path, content: dict[str, object]) -> None:
    text = json.dumps(content, indent=2, sort_keys=True)
    path.write_text(f"{text}\n", encoding="utf-8")
