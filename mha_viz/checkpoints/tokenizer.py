"""Finds and reads the tokenizer of a checkpoint, as transformers' AutoTokenizer does.

In one case it differs, and a note says so: a GPT-2's tokenizer.json is read unchanged, with all
its steps. transformers 5 rebuilds it as GPT-2's own tokenizer, without a normalizer and with
GPT-2's way of splitting words, which is not what such a model was trained with.
"""

import json
import os
import re
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokenizers import Tokenizer

from mha_viz.checkpoints.folder import expanded, is_local, steps_unlike_gpt2
from mha_viz.errors import CheckpointError, SourceError
from mha_viz.gpt2 import GPT2Config

if TYPE_CHECKING:
    from transformers.tokenization_utils_base import PreTrainedTokenizerBase

GPT2_VOCABULARY_SIZES = range(50257, 50305)  # GPT-2's own, and padded to a multiple of 64
FILES = (  # any of these is a tokenizer
    ("tokenizer.json",),
    ("vocab.json", "merges.txt"),
    ("vocab.txt",),
    ("tokenizer.model",),
    ("spiece.model",),
    ("sentencepiece.bpe.model",),
)
_GPT2_CLASSES = ("", "GPT2Tokenizer", "GPT2TokenizerFast")
_one_at_a_time = threading.Lock()  # transformers imports its classes when they are first used


def find_tokenizer(
    path: Path, name: str, config: GPT2Config, other: str | Path | None
) -> tuple[Tokenizer, list[str]]:
    """The tokenizer of the checkpoint at `path`, or of the source `other` if given, with notes.

    Raises SourceError if there is none, with a hint on where to get it.
    """
    if other is not None:
        return read_tokenizer(_folder(other), str(other))
    folder = path if path.is_dir() else path.parent
    try:
        return read_tokenizer(folder, name)
    except SourceError as error:
        size = config.vocab_size
        if size in GPT2_VOCABULARY_SIZES:
            hint = (
                f"Its vocabulary of {size:,} fits GPT-2's own tokenizer: copy tokenizer.json of "
                f"`gpt2` from the Hugging Face Hub into {folder}. In Python, "
                'load(..., tokenizer="gpt2") uses it.'
            )
        else:
            hint = (
                f"Its vocabulary of {size:,} is not GPT-2's, so GPT-2's tokenizer does not fit. "
                "Copy the tokenizer that the model was trained with into the folder."
            )
        raise SourceError(f"{error} {hint}") from error


def read_tokenizer(folder: Path, name: str) -> tuple[Tokenizer, list[str]]:
    """The tokenizer in `folder`, with notes on how it was read.

    Raises SourceError if there is none, and CheckpointError if it cannot be read.
    """
    theirs, notes = transformers_tokenizer(folder, name)
    tokenizer: Tokenizer | None = getattr(theirs, "backend_tokenizer", None)
    if tokenizer is None:
        raise CheckpointError(
            f"The tokenizer of {name} is a {type(theirs).__name__} written in Python, which has no "
            "tokenizer.json. Save it as tokenizer.json, or choose another model."
        )
    try:
        theirs("", add_special_tokens=False)
    except Exception as error:
        # Tokenizers of scanned pages, for example, want words with their places.
        raise CheckpointError(
            f"The tokenizer of {name} is a {type(theirs).__name__}, which does not read plain "
            "text. Choose another model."
        ) from error
    if not tokenizer.get_vocab_size():
        raise CheckpointError(
            f"The tokenizer of {name} has no tokens. Copy the tokenizer that the model was trained "
            "with into the folder."
        )
    model = tokenizer.model
    if getattr(model, "dropout", None):
        model.dropout = None
        tokenizer.model = model
        notes.append("The dropout of its tokenizer is disabled, because it splits words at random.")
    return tokenizer, notes


def transformers_tokenizer(folder: Path, name: str) -> "tuple[PreTrainedTokenizerBase, list[str]]":
    """The tokenizer in `folder` as an object of transformers, with notes on how it was read.

    Raises SourceError if there is none, and CheckpointError if it cannot be read.
    """
    if not any(all((folder / part).is_file() for part in parts) for parts in FILES):
        raise SourceError(
            f"{name} has no tokenizer: expected tokenizer.json, or vocab.json and merges.txt, or "
            "vocab.txt."
        )
    try:
        with _one_at_a_time:
            return _read(folder)
    except Exception as error:
        # The parser is written in Rust and raises bare Exception for a damaged file.
        raise CheckpointError(
            f"The tokenizer of {name} cannot be read{_reason(error)}. Download or save it again."
        ) from error


def vocabulary_notes(tokenizer: Tokenizer, config: GPT2Config) -> list[str]:
    """A note if the tokenizer has tokens that the model does not have."""
    vocabulary = tokenizer.get_vocab(with_added_tokens=True)
    beyond = sorted((i, piece) for piece, i in vocabulary.items() if i >= config.vocab_size)
    if not beyond:
        return []
    some = ", ".join(f"`{piece}`" for _, piece in beyond[:3])
    more = f" and {len(beyond) - 3:,} more" if len(beyond) > 3 else ""
    return [
        f"Its tokenizer also has {some}{more}, with ids from {beyond[0][0]:,}; the model has only "
        f"ids 0 to {config.vocab_size - 1:,}. Texts that contain these tokens are rejected."
    ]


def _read(folder: Path) -> "tuple[PreTrainedTokenizerBase, list[str]]":
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    from transformers.models.auto.tokenization_auto import AutoTokenizer, tokenizer_class_from_name
    from transformers.models.gpt2.configuration_gpt2 import GPT2Config as TheirConfig
    from transformers.tokenization_utils_tokenizers import TokenizersBackend

    settings, model = _json(folder / "tokenizer_config.json"), _json(folder / "config.json")
    stated = str(settings.get("tokenizer_class") or model.get("tokenizer_class") or "")
    file = folder / "tokenizer.json"
    options = {"local_files_only": True, "trust_remote_code": False}
    if not stated and not file.is_file() and (folder / "vocab.txt").is_file():
        bert = tokenizer_class_from_name("BertTokenizer")
        return bert.from_pretrained(folder, **options), [
            "No file names the class of its tokenizer. It was read as BERT's, because of vocab.txt."
        ]
    others = steps_unlike_gpt2(_json(file), settings) if file.is_file() else []
    if others and stated in _GPT2_CLASSES:
        return TokenizersBackend.from_pretrained(folder, **options), [
            "Its tokenizer.json was read as it is. transformers' AutoTokenizer would leave out "
            f"what GPT-2's tokenizer does not have: {', '.join(others)}."
        ]
    config = TheirConfig()
    config.tokenizer_class = model.get("tokenizer_class")
    return AutoTokenizer.from_pretrained(folder, config=config, **options), []


def _json(file: Path) -> dict[str, Any]:
    """The object in a file; empty if there is none."""
    if not file.is_file():
        return {}
    content = json.loads(file.read_text(encoding="utf-8"))
    if not isinstance(content, dict):
        raise ValueError(f"{file.name} is not a JSON object")
    return content


def _reason(error: Exception) -> str:
    """The message of a library's exception, if it is one readable sentence."""
    lines = str(error).strip().splitlines()
    usable = (
        len(lines) == 1 and len(lines[0]) <= 160 and not re.search("<|Error|Exception", lines[0])
    )
    return f" ({lines[0]})" if usable else ""


def _folder(source: str | Path) -> Path:
    if isinstance(source, Path) or is_local(source):
        return expanded(source)
    from mha_viz.checkpoints import hub

    return hub.fetch_tokenizer(source)
