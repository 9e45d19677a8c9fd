"""The tokenizer of a checkpoint: found, read, and checked against the vocabulary of the weights."""

from pathlib import Path

from tokenizers import Tokenizer

from mha_viz.checkpoints.folder import expanded, is_local
from mha_viz.errors import CheckpointError, SourceError
from mha_viz.gpt2 import GPT2Config

GPT2_VOCABULARY_SIZES = range(50257, 50305)  # GPT-2's own, and padded to a multiple of 64


def find_tokenizer(
    place: Path, name: str, config: GPT2Config, other: str | Path | None
) -> Tokenizer:
    """The tokenizer of the checkpoint at `place`, or that of the source `other`.

    Raises SourceError if there is none, with a hint on where to get it.
    """
    if other is not None:
        return read_tokenizer(_folder(other), str(other))
    try:
        return read_tokenizer(place if place.is_dir() else place.parent, name)
    except SourceError as error:
        size = config.vocab_size
        if size in GPT2_VOCABULARY_SIZES:
            hint = (
                f"Its vocabulary of {size:,} fits GPT-2's own tokenizer: "
                'load(..., tokenizer="gpt2") uses it.'
            )
        else:
            hint = (
                f"Its vocabulary of {size:,} is not GPT-2's, so no other tokenizer fits. Copy the "
                "one that it was trained with into the folder."
            )
        raise SourceError(f"{error} {hint}") from error


def read_tokenizer(folder: Path, name: str) -> Tokenizer:
    """The tokenizer in `folder`: tokenizer.json as it is, or built from vocab.json and merges.txt.

    transformers always builds it, even if there is a tokenizer.json, and adds a missing
    `<|endoftext|>` with an id that the model does not have.

    Raises SourceError if there is none, and CheckpointError if it cannot be read.
    """
    file, parts = folder / "tokenizer.json", [folder / "vocab.json", folder / "merges.txt"]
    if not (file.exists() or all(part.exists() for part in parts)):
        raise SourceError(
            f"{name} has no tokenizer: expected tokenizer.json, or vocab.json and merges.txt."
        )
    try:
        return Tokenizer.from_file(str(file)) if file.exists() else _built(folder)
    except Exception as error:
        # The parser is written in Rust and raises bare Exception for a damaged file.
        raise CheckpointError(
            f"The tokenizer of {name} cannot be read ({error}). Download or save it again."
        ) from error


def check_vocabulary(tokenizer: Tokenizer, config: GPT2Config, name: str) -> None:
    """Raises CheckpointError if the tokenizer does not fit the model, or is of another kind."""
    ids = tokenizer.get_vocab(with_added_tokens=True).values()
    if not ids or max(ids) >= config.vocab_size:
        raise CheckpointError(
            f"The tokenizer of {name} has ids up to {max(ids, default=-1):,}, but the model has "
            f"{config.vocab_size:,} tokens. Use the tokenizer that the model was trained with."
        )
    if "ByteLevel" not in f"{type(tokenizer.decoder).__name__} {tokenizer.decoder}":
        raise CheckpointError(
            f"The tokenizer of {name} is not a byte-level BPE like GPT-2's, so its tokens cannot "
            "be shown as bytes of the text. Choose another model."
        )


def _built(folder: Path) -> Tokenizer:
    from transformers.models.gpt2.tokenization_gpt2 import GPT2Tokenizer

    tokenizer: Tokenizer = GPT2Tokenizer.from_pretrained(folder).backend_tokenizer
    return tokenizer


def _folder(source: str | Path) -> Path:
    if isinstance(source, Path) or is_local(source):
        return expanded(source)
    from mha_viz.checkpoints import hub

    return hub.fetch_tokenizer(source)
