"""A folder on disk: read as a whole, and written so that transformers reads it as it is."""

import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch import Tensor

from mha_viz.checkpoints.config import config_to_json, read_config
from mha_viz.checkpoints.tensors import Progress, State, find_weights, read_nanogpt, read_state
from mha_viz.errors import CheckpointError, MhaVizError, SourceError
from mha_viz.gpt2 import GPT2Config

END_OF_TEXT = "<|endoftext|>"


def read_weights(
    place: Path, name: str, *, allow_pickle: bool = False, on_progress: Progress | None = None
) -> tuple[GPT2Config, State, dict[str, object]]:
    """Configuration, tensors, and the raw config.json of a folder or of a nanoGPT `.pt` file.

    `on_progress` is told the share of the tensors that was read, and may raise to stop. Raises
    SourceError and CheckpointError, as `config` and `tensors` do.
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
        raise SourceError(f"{name} cannot be opened: {error.strerror}. Check the path.") from error
    raise CheckpointError(
        f"{name} is a single file. Give the folder that holds it, with config.json and "
        "the tokenizer; only nanoGPT's .pt files are read alone."
    )


def _read_folder(
    folder: Path, name: str, allow_pickle: bool, on_progress: Progress | None
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
    """A folder that `load` and `transformers.GPT2LMHeadModel.from_pretrained` read as it is."""
    folder.mkdir(parents=True, exist_ok=True)
    end_of_text = tokenizer.token_to_id(END_OF_TEXT)
    if end_of_text is None:
        end_of_text = config.vocab_size - 1
    raw = config_to_json(config, dtype, end_of_text)
    raw["tie_word_embeddings"] = "lm_head.weight" not in tensors
    _write_json(folder / "config.json", raw)
    stored = {name: tensor.detach().to(dtype).contiguous() for name, tensor in tensors.items()}
    # Replaced as a whole: a stop halfway leaves the old file, and who has it mapped keeps it.
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
