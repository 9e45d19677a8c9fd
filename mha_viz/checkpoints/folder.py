"""A folder on disk: read as a whole, and written so that transformers reads it as it is."""

import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch import Tensor

from mha_viz.checkpoints.config import config_to_json, read_config
from mha_viz.checkpoints.tensors import State, find_weights, read_nanogpt, read_state
from mha_viz.errors import CheckpointError, SourceError
from mha_viz.gpt2 import GPT2Config

END_OF_TEXT = "<|endoftext|>"


def read_weights(
    place: Path, name: str, *, allow_pickle: bool = False
) -> tuple[GPT2Config, State, dict[str, object]]:
    """Configuration, tensors, and the raw config.json of a folder or of a nanoGPT `.pt` file.

    Raises SourceError and CheckpointError, as `config` and `tensors` do.
    """
    if not place.exists():
        raise SourceError(f"There is no folder {name}. Check the path.")
    if place.is_file():
        files = [place]
        if place.suffix != ".pt":
            raise CheckpointError(
                f"{name} is a single file. Give the folder that holds it, with config.json and "
                "the tokenizer; only nanoGPT's .pt files are read alone."
            )
    else:
        if not (place / "config.json").exists() and (place / "ckpt.pt").exists():
            files = [place / "ckpt.pt"]
        else:
            config = read_config(place, name)
            raw = json.loads((place / "config.json").read_text(encoding="utf-8"))
            files = find_weights(place, name, allow_pickle=allow_pickle)
            tied = raw.get("tie_word_embeddings", True) is not False
            return config, read_state(files, config, name, tied=tied), raw
    config, state = read_nanogpt(files[0], name)
    return config, state, dict(config_to_json(config, torch.float32, config.vocab_size - 1))


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
    save_file(stored, folder / "model.safetensors", metadata={"format": "pt"})
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
